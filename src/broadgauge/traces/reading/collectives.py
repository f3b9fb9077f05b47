"""Which collectives did a rank take part in: NCCL's kernels, Gloo's ranges, and what they sent?"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from broadgauge.traces.reading.columns import whole_number
from broadgauge.traces.reading.events import EventArguments
from broadgauge.traces.trace import CollectiveCall, CollectiveKind, Spans

IS_NCCL = re.compile(r"^(?:void )?(?:nccl|rccl|msccl)\w*?(?:Dev)?Kernel", re.IGNORECASE)
"""`ncclDevKernel_AllReduce_Sum_bf16_RING_LL(…)`, `ncclKernel_…` before NCCL 2.19; RCCL's."""
ELEMENT_BYTES = {
    "double": 8, "long": 8, "int64": 8, "float64": 8, "complexfloat": 8, "complexdouble": 16,
    "float": 4, "int": 4, "float32": 4, "int32": 4,
    "half": 2, "bfloat16": 2, "float16": 2, "short": 2, "int16": 2,
    "byte": 1, "char": 1, "bool": 1, "int8": 1, "uint8": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip
"""By c10's names of types, as ParamCommsUtils writes them, and by torch's."""
_KINDS: tuple[tuple[str, CollectiveKind], ...] = (
    ("allreduce", CollectiveKind.ALL_REDUCE),
    ("reducescatter", CollectiveKind.REDUCE_SCATTER),
    ("allgather", CollectiveKind.ALL_GATHER),
    ("alltoall", CollectiveKind.ALL_TO_ALL),
    ("broadcast", CollectiveKind.BROADCAST),
    ("sendrecv", CollectiveKind.SEND_RECV),
    ("barrier", CollectiveKind.BARRIER),
    ("reduce", CollectiveKind.REDUCE),
    ("gather", CollectiveKind.GATHER),
    ("scatter", CollectiveKind.SCATTER),
    ("send", CollectiveKind.SEND_RECV),
    ("recv", CollectiveKind.SEND_RECV),
)
"""The first whose letters stand in a name."""


def kind_named(name: str) -> CollectiveKind:
    """Of `ncclDevKernel_AllReduce_…`, `_allgather_base`, `gloo:all_reduce`, `c10d::allreduce_`."""
    letters = re.sub(r"[^a-z]", "", name.lower())
    return next((kind for word, kind in _KINDS if word in letters), CollectiveKind.OTHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBy:
    """What the profiler says beside a kernel of NCCL."""

    kind: CollectiveKind | None
    group: str
    message_bytes: int | None
    dtype: str | None
    num_ranks: int | None
    ranks: tuple[int, ...] | None


NOTHING_SAID = SentBy(
    kind=None, group="", message_bytes=None, dtype=None, num_ranks=None, ranks=None
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnnumberedCall:
    """A rank's part in a collective, before its place among the others is known."""

    name: str
    kind: CollectiveKind
    start_ns: int
    end_ns: int
    stream: int
    launch_ns: int
    sent: SentBy


def sent_by(arguments: EventArguments) -> SentBy:
    """What a collective sends and among whom; None for what is not told.

    S as nccl-tests defines it: the larger of what goes in and what comes out of one rank.
    """
    kind = None if arguments.collective is None else kind_named(str(arguments.collective))
    dtype = None if arguments.dtype is None else str(arguments.dtype)
    elements = max(whole_number(arguments.elements_in), whole_number(arguments.elements_out))
    width = ELEMENT_BYTES.get((dtype or "").lower())
    size = whole_number(arguments.group_size)
    return SentBy(
        kind=kind,
        group="" if arguments.group is None else str(arguments.group),
        message_bytes=None if width is None or elements < 0 else elements * width,
        dtype=dtype,
        num_ranks=size if size > 0 else None,
        ranks=_ranks(arguments.group_ranks),
    )


def _ranks(value: Any) -> tuple[int, ...] | None:
    """Of `[0, 1]`, a list or its text. Large groups are shortened to `[0, 1, ..., 63]`: unknown."""
    if isinstance(value, str):
        if "..." in value or not re.fullmatch(r"[\[\]\s,\d]*", value):
            return None
        return tuple(int(number) for number in re.findall(r"\d{1,9}", value)) or None
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return tuple(value) or None
    return None


def in_order(calls: Sequence[UnnumberedCall]) -> tuple[CollectiveCall, ...]:
    """By start, each with its place among those of its group, as they were launched.

    NCCL asks all ranks of a group to launch in one order; on several streams they may start in
    another.
    """
    counts: Counter[str] = Counter()
    numbered = []
    for call in sorted(calls, key=lambda call: (call.launch_ns, call.start_ns)):
        sent = call.sent
        numbered.append(
            CollectiveCall(
                kind=call.kind,
                name=call.name,
                group=sent.group,
                sequence=counts[sent.group],
                start_ns=call.start_ns,
                end_ns=call.end_ns,
                stream=call.stream,
                launch_ns=call.launch_ns,
                message_bytes=sent.message_bytes,
                dtype=sent.dtype,
                num_ranks=sent.num_ranks,
                ranks=sent.ranks,
            )
        )
        counts[sent.group] += 1
    return tuple(sorted(numbered, key=lambda call: (call.start_ns, call.sequence)))


def calls_on_cpu(ranges: Spans, operators: Spans, names: tuple[str, ...]) -> list[UnnumberedCall]:
    """Gloo's: a range `gloo:…` on a thread of its own, from when it is begun to when it is done.

    Gloo's reduce_scatter is an all_reduce that calls itself so: where c10d's operators and the
    ranges are the same in number and order, the kind is the operator's.
    """
    begun = _whose_name(ranges, names, lambda name: name.startswith(("gloo:", "mpi:", "ucc:")))
    asked = _whose_name(operators, names, _is_collective)
    pairs = list(zip(begun, asked, strict=False))
    kinds = [
        (kind_named(names[ranges.name[here]]), kind_named(names[operators.name[there]]))
        for here, there in pairs
    ]
    is_paired = len(begun) == len(asked) and all(map(_is_alike, kinds))
    return [
        UnnumberedCall(
            name=names[ranges.name[index]],
            kind=kinds[place][1] if is_paired else kind_named(names[ranges.name[index]]),
            start_ns=int(ranges.start_ns[index]),
            end_ns=int(ranges.end_ns[index]),
            stream=int(ranges.thread[index]),
            launch_ns=int(operators.start_ns[asked[place]]) if is_paired else -1,
            sent=NOTHING_SAID,
        )
        for place, index in enumerate(begun)
    ]


def _is_collective(name: str) -> bool:
    return name.startswith("c10d::") and kind_named(name) != CollectiveKind.OTHER


def _is_alike(kinds: tuple[CollectiveKind, CollectiveKind]) -> bool:
    done, asked = kinds
    return done == asked or kinds == (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER)


def _whose_name(
    spans: Spans, names: tuple[str, ...], is_one: Callable[[str], bool]
) -> npt.NDArray[np.int64]:
    """Places of the spans whose names are of a kind."""
    chosen = np.array([is_one(name) for name in names], dtype=bool)
    if not len(spans) or not chosen.any():
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(chosen[spans.name])
