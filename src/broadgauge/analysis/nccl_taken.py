"""What did NCCL do in a case's trials, and did it do the same in all of them?"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from broadgauge.analysis.model import NcclTaken
from broadgauge.specs.records.nccl import NcclUse
from broadgauge.specs.records.record import Record, Status

_GPUDIRECT = {True: "on", False: "off"}
_COMPARED: tuple[tuple[str, Callable[[NcclUse], object]], ...] = (
    ("network", lambda use: use.network),
    ("NCCL", lambda use: use.version),
    ("nodes as NCCL sees them:", lambda use: use.num_nodes),
    ("channels:", lambda use: use.num_channels),
    ("GPUDirect", lambda use: None if use.gpudirect is None else _GPUDIRECT[use.gpudirect]),
)


def nccl_taken(records: Sequence[Record]) -> NcclTaken | None:
    """None: no record has anything of NCCL's."""
    known = [record for record in records if record.nccl is not None]
    good = [record for record in known if record.status is Status.OK]
    if not known:
        return None
    use = (good or known)[-1].nccl
    assert use is not None
    uses = [record.nccl for record in known if record.nccl is not None]
    return NcclTaken(use=use, other_trials=tuple(_others(use, uses)))


def _others(use: NcclUse, uses: Sequence[NcclUse]) -> Iterator[str]:
    """What is unknown in a trial is not otherwise."""
    for name, value_of in _COMPARED:
        for value, count in Counter(map(value_of, uses)).items():
            if value is not None and value != value_of(use):
                yield f"{name} {value} in {count} of {len(uses)} trials"
