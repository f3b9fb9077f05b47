"""Which closed sets of words do all sides use?"""

from enum import Enum
from typing import Literal, NoReturn

Device = Literal["cpu", "cuda"]
Backend = Literal["gloo", "nccl"]
CollectiveOp = Literal[
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "send_recv",
]
Engine = Literal["torch", "nccl-tests"]
Strategy = Literal["ddp", "fsdp", "hsdp"]
ActivationCheckpointing = Literal["none", "selective", "full"]
AttentionName = Literal["sdpa", "flash", "eager"]
DataType = Literal["float32", "bfloat16"]
Comma = Literal["thousands", "decimal"]
Transport = Literal[
    "tcp",
    "overlay",
    "virtio",
    "sriov-tcp",
    "roce",
    "infiniband",
    "efa",
    "slingshot",
    "omnipath",
    "tcpx",
]
DATA_TYPE_BYTES: dict[DataType, int] = {"float32": 4, "bfloat16": 2}
MOST_CAPTURED_ITERATIONS = 256
"""In one CUDA graph: some thousand nodes, of which NCCL keeps memory for each call."""


class TextEnum(str, Enum):
    """A string with a closed set of values; `enum.StrEnum` is newer than Python 3.10."""

    def __str__(self) -> str:
        return str.__str__(self)

    def __format__(self, format_spec: str) -> str:
        return str.__format__(self, format_spec)


class Status(TextEnum):
    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"


class Phase(TextEnum):
    """Where a rank is; each has its own time limit."""

    RENDEZVOUS = "rendezvous"
    WARM_UP = "warm_up"
    MEASURE = "measure"
    TEARDOWN = "teardown"


class ErrorKind(TextEnum):
    NOT_STARTED = "not_started"
    """The ranks of the launch did not come up, and no more is known."""
    CRASHED = "crashed"
    """A rank ended with an exit code."""
    KILLED = "killed"
    """A rank was ended by a signal that Broadgauge did not send."""
    HUNG = "hung"
    """A phase's time limit passed."""
    WRONG_RESULT = "wrong_result"
    """A collective's result was not what it must be."""
    REFUSED = "refused"
    """The case can't run here: no such file, no metric in the output, out of memory."""
    NO_SPACE = "no_space"
    """A disk of the rank's host takes no more."""
    LAUNCHER_LOST = "launcher_lost"
    """The agent of the ranks ended."""


class CounterKind(TextEnum):
    """Who counted the bytes of a NIC?"""

    SHAPER = "shaper"
    """The queue of an emulated link: every segment with its headers."""
    QUEUE = "queue"
    """The queue of a NIC that was there: as the shaper's, but what a device adds is not in it."""
    INTERFACE = "interface"
    """The interface: a packet that the NIC cuts into segments counts with one header only."""
    HCA_PORT = "hca_port"
    """A port of an InfiniBand or RoCE adapter: payload with its headers, whoever sent it."""


UNDER_READ_RATIO = {CounterKind.INTERFACE: 0.044}
"""At most this share of the bytes is missing from such a counter; the others miss none.

An interface with segmentation offload counts 64 KiB with one header of 66 bytes instead of 45:
at MTU 1500, 44 x 66 of 65,536 bytes. Source: docs/architecture.md, "Shaping"; seen there as 4 %.
"""


class StepMode(TextEnum):
    """How is a training step run? Only timed ones count for rates, bytes and the nodes' use."""

    TIMED = "timed"
    COMMUNICATION_OFF = "communication_off"
    """Its collectives send nothing and copy locally."""
    TRACED = "traced"
    """Under a profiler, which slows it down."""


def assert_never(value: NoReturn) -> NoReturn:
    """`typing.assert_never` of Python 3.11: the type checker proves that no call is reached."""
    raise AssertionError(f"{value!r} is of no known kind")
