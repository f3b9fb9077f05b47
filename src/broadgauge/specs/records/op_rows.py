"""What is kept of one operation at one size? A collective, nccl-tests' mean of it, or a message.

They stand in one list of a record, in the order measured, as they always have: which of them a
stored row is, its keys say.
"""

from typing import Annotated, Any

from pydantic import Discriminator, SerializerFunctionWrapHandler, Tag, model_serializer

from broadgauge.specs.base import StoredModel


class OpRow(StoredModel):
    """What all of them have. Times are of the slowest rank in each iteration."""

    op: str
    dtype: str
    size_bytes: int
    """Total size S of nccl-tests."""
    iterations: int
    time_s: float
    """Mean over iterations."""
    algbw_gbyte_per_s: float
    busbw_gbyte_per_s: float
    wire_bytes: float | None = None
    """Per iteration, busiest node and direction, by the link's counters; None on one node."""
    amplification_ratio: float | None = None
    """wire_bytes over the ring algorithm's bytes through that node."""
    link_rate_gbps: float | None = None
    """wire_bytes x 8 over time, 10^9 bit/s."""
    is_correct: bool | None = None
    """None: not checked."""


class CollectiveRow(OpRow):
    """One collective of torch.distributed, whose iterations are known one by one."""

    time_min_s: float
    time_median_s: float
    time_max_s: float

    @property
    def typical_s(self) -> float:
        return self.time_median_s

    @property
    def measured_by(self) -> str:
        return "torch"


class NcclTestsRow(OpRow):
    """One collective of another program, which gives one mean of all its iterations."""

    engine: str = "nccl-tests"
    """The program."""

    @property
    def typical_s(self) -> float:
        """The mean is all there is."""
        return self.time_s

    @property
    def measured_by(self) -> str:
        return self.engine

    @model_serializer(mode="wrap")
    def _with_keys_of_old(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Readers of 0.1 want these keys of every row."""
        return {**write(self), **dict.fromkeys(ITERATION_TIMES)}


class MessageRow(OpRow):
    """A message from one rank to another, one way, while all others wait."""

    from_rank: int
    to_rank: int
    time_min_s: float
    time_median_s: float
    time_max_s: float

    @property
    def typical_s(self) -> float:
        return self.time_median_s

    @property
    def measured_by(self) -> str:
        return "torch"


ITERATION_TIMES = ("time_min_s", "time_median_s", "time_max_s")


def _which(row: object) -> str:
    """Which of the three: a row of ours, or the keys of a stored one."""
    match row:
        case MessageRow():
            return "message"
        case NcclTestsRow():
            return "nccl-tests"
        case {"from_rank": int(), "to_rank": int()}:
            return "message"
        case {"engine": str(engine)} if engine != "torch":
            return "nccl-tests"
        case _:
            return "collective"


AnyOpRow = Annotated[
    Annotated[CollectiveRow, Tag("collective")]
    | Annotated[NcclTestsRow, Tag("nccl-tests")]
    | Annotated[MessageRow, Tag("message")],
    Discriminator(_which),
]
