"""What is the same in nccl-tests' table and in its JSON? Its words, its ranks and its rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broadgauge.doctor.log.nccl_tests import ops_of_row
from broadgauge.importing.measured import FLAGS_OF_SHAPE, ShapeGiven, SizeMeasured
from broadgauge.merging.definitions import busbw_gbyte_per_s
from broadgauge.messages.vocabulary import CollectiveOp
from broadgauge.specs.errors import InputError

NO_LATENCY = "nccl-tests gives a mean of calls that overlap, which is no latency"
PROGRAMS: dict[str, CollectiveOp | None] = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "sendrecv": "send_recv",
    "alltoallv": None,
    "gather": None,
    "scatter": None,
    "hypercube": None,
}
"""What its programs are called, without `_perf`. None: no collective that Broadgauge knows."""
_DTYPES = {
    "float": "float32",
    "half": "float16",
    "double": "float64",
    "fp8_e4m3": "float8_e4m3",
    "fp8_e5m2": "float8_e5m2",
    "f8e4m3": "float8_e4m3",
    "f8e5m2": "float8_e5m2",
}
"""Its words → torch's; others are the same."""
TYPES = frozenset({"int8", "uint8", "int32", "uint32", "int64", "uint64", "bfloat16", *_DTYPES})
_BUSBW_ROUNDED = 0.02
"""GB/s; it is printed with two digits."""
_BUSBW_RATIO = 0.05
"""More than the digits of a time can hide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLine:
    """What is told of one rank."""

    host: str
    group: int
    """Of several that measure at once (NCCL_TESTS_SPLIT)."""
    gpu: str


@dataclass(frozen=True, slots=True)
class Alike:
    """What rows must agree in to be of one case: `-d all -o all` prints many kinds."""

    dtype: str
    """As torch names it."""
    settings: tuple[tuple[str, str], ...]
    """Those that are not the usual ones."""


def alike(dtype: str, redop: str | None, root: str | None, *, is_out_of_place: bool) -> Alike:
    """Of one row, from its cells."""
    settings: list[tuple[str, str]] = []
    if redop not in (None, "sum", "none"):
        settings.append(("redop", str(redop)))
    if root not in (None, "-1", "0"):
        settings.append(("root", str(root)))
    if not is_out_of_place:
        settings.append(("buffers", "in place"))
    return Alike(_DTYPES.get(dtype, dtype), tuple(settings))


def unusual(aggregated: int | None, graph: int | None, ranks: Iterable[RankLine]) -> dict[str, str]:
    """Settings of a whole table that are not the usual ones."""
    settings = {}
    if aggregated not in (None, 1):
        settings["aggregated"] = str(aggregated)
    if graph:
        settings["graph"] = str(graph)
    groups = len({rank.group for rank in ranks})
    return {**settings, "groups": str(groups)} if groups > 1 else settings


def size_measured(
    *,
    size_bytes: int,
    time_us: float,
    busbw: float,
    wrong: Sequence[float],
    is_checked: bool,
    iterations: int,
    ring: tuple[CollectiveOp, int],
    place: str,
) -> SizeMeasured:
    """One row, of this collective among so many ranks.

    Raises InputError for what no clock measures, and where the file's own busbw is another one's.
    """
    if not 0 < time_us < 1e12 or not 0 <= busbw < 1e6:  # NaN, too
        raise InputError(
            f"{place}: {time_us:g} us and {busbw:g} GB/s busbw for {size_bytes} bytes can't be",
            hint="the file must be as nccl-tests wrote it",
        )
    follows = busbw_gbyte_per_s(*ring, size_bytes, time_us / 1e6)
    if abs(follows - busbw) > _BUSBW_ROUNDED + _BUSBW_RATIO * follows:
        raise InputError(
            f"{place}: {busbw:g} GB/s busbw is not that of {ring[0]} among {ring[1]} ranks, which "
            f"would be {follows:.4g} at {size_bytes} bytes in {time_us:g} us",
            hint="another collective, or another number of ranks: `--op`, `--ranks`",
        )
    is_wrong = any(count > 0 for count in wrong)
    return SizeMeasured(
        size_bytes=size_bytes,
        iterations=iterations,
        time_s=time_us / 1e6,
        is_correct=False if is_wrong else True if is_checked else None,
    )


def op_of(
    program: str | None, given: ShapeGiven, place: str, fitting: Sequence[str] = ()
) -> CollectiveOp | None:
    """None: it is known, and none of ours. `fitting`: those that its rows can be of."""
    if program is not None:
        return PROGRAMS.get(program)
    if given.op is not None:
        return given.op
    ops = [op for op in PROGRAMS.values() if op in fitting]
    if len(ops) == 1:
        return ops[0]
    which = f": {' or '.join(fitting)}, by its columns" if fitting else ""
    raise InputError(
        f"{place}: the file does not say which collective this is{which}",
        hint=f"say it: `--op {next(iter(fitting), 'all_reduce')}`; nccl-tests prints it from "
        "2.17 on",
    )


def ops_of_rows(rows: Sequence[str], num_ranks: int) -> list[str]:
    """Collectives that all rows can be of whose bandwidths have digits enough to tell."""
    of_rows = [ops for ops in (ops_of_row(row, num_ranks) for row in rows) if ops]
    return [op for op in (of_rows[-1] if of_rows else ()) if all(op in ops for ops in of_rows)]


def of_first_group(ranks: Sequence[RankLine]) -> list[RankLine]:
    """Those of one communicator, where they are split."""
    return [rank for rank in ranks if rank.group == ranks[0].group]


def nodes_and_ranks(ranks: Sequence[RankLine], given: ShapeGiven, place: str) -> tuple[int, int]:
    """Nodes and ranks of one communicator: of the first group, where they are split."""
    of_first = of_first_group(ranks)
    num_ranks = given.ranks or len(of_first)
    nodes = given.nodes or len({rank.host for rank in of_first})
    if not num_ranks or not nodes:
        raise InputError(
            f"{place}: the file does not say how many ranks took part: no line `#  Rank  0 …`",
            hint=FLAGS_OF_SHAPE,
        )
    return nodes, num_ranks
