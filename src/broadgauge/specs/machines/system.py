"""What was measured of one machine by `broadgauge calibrate`? The system file's form.

Every time is of this machine's own calls of torch, as the reference trainer makes them. A file is
written once and read by others; its version grows when a reader of the old one would go wrong.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from broadgauge.specs.base import Name, Spec
from broadgauge.specs.case import Backend, Device
from broadgauge.specs.networks.network import PathKind
from broadgauge.specs.workloads.collectives import CollectiveOp
from broadgauge.specs.workloads.gpt import DataType, GptModel, Strategy

SYSTEM_FORMAT = "broadgauge system"
SYSTEM_VERSION = 1
ROUNDING_RATIO = 1e-9
"""Quartiles of equal times may differ from them in the last digit."""


class Timing(Spec):
    """How long one call takes: the median of its repetitions, and their quartiles."""

    median_s: float = Field(gt=0)
    low_s: float = Field(gt=0)
    """A quarter of the repetitions took less."""
    high_s: float = Field(gt=0)
    repetitions: int = Field(ge=1)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        room = 1 + ROUNDING_RATIO
        if not self.low_s <= self.median_s * room or not self.median_s <= self.high_s * room:
            raise ValueError(
                f"the median lies outside of its quartiles: low_s {self.low_s:g}, "
                f"median_s {self.median_s:g}, high_s {self.high_s:g}"
            )
        return self


class GemmTime(Spec):
    """A linear layer without bias over `tokens` rows: its product, and the two of its backward."""

    dtype: DataType
    tokens: int = Field(ge=1)
    inputs: int = Field(ge=1)
    outputs: int = Field(ge=1)
    forward: Timing
    backward: Timing
    """The gradients of its input and of its weight, one after the other."""

    @property
    def flops(self) -> float:
        """Of the forward product; the backward pass has twice as many."""
        return 2.0 * self.tokens * self.inputs * self.outputs


class AttentionTime(Spec):
    """Causal attention as torch's scaled_dot_product_attention does it here."""

    dtype: DataType
    batch: int = Field(ge=1)
    heads: int = Field(ge=1)
    head_dim: int = Field(ge=1)
    seq_len: int = Field(ge=1)
    forward: Timing
    backward: Timing


class CopyTime(Spec):
    """One tensor copied into another: `size_bytes` are read and as many written."""

    size_bytes: int = Field(ge=1)
    time: Timing


class OptimizerTime(Spec):
    """A fused AdamW over float32 parameters, all in `tensors` tensors."""

    parameters: int = Field(ge=1)
    tensors: int = Field(ge=1)
    time: Timing


class LaunchTime(Spec):
    """What the host needs to launch, kernels being too small to matter."""

    operation: Timing
    """One addition, called from Python; mean of a thousand in a row."""
    layer_forward: Timing
    """A block of the reference model on 8 tokens of width 64."""
    layer_backward: Timing


class StepTime(Spec):
    """A step of the reference trainer on one rank alone, nothing sent."""

    model: GptModel
    dtype: DataType
    batch: int = Field(ge=1)
    """Sequences of a micro-batch."""
    time: Timing


class CollectiveTime(Spec):
    """One collective at one size on one path; sizes as nccl-tests has them."""

    op: CollectiveOp
    size_bytes: int = Field(ge=1)
    time: Timing


class PathTimes(Spec):
    """The collectives over one way between this machine's ranks."""

    name: Name
    path: PathKind | Literal["emulated", "found"]
    """A way inside one node, an emulated network between two, or one of a run that was found."""
    backend: Backend
    nodes: int = Field(ge=1)
    ranks_per_node: int = Field(ge=1)
    mtu_bytes: int | None = None
    """Of an emulated network; None: inside one node."""
    rate_gbps: float | None = Field(default=None, gt=0)
    """Line rate that it was shaped to; None: as fast as the host."""
    round_trip_s: float | None = Field(default=None, gt=0)
    ceiling_gbps: float | None = Field(default=None, gt=0)
    """What one plain TCP stream carries there."""
    collectives: tuple[CollectiveTime, ...] = ()


class TrainedStep(Spec):
    """A step of the reference trainer between the ranks of a path, with and without sending."""

    path: Name
    strategy: Strategy
    model: GptModel
    dtype: DataType
    batch: int = Field(ge=1)
    time: Timing
    without_communication: Timing


class MachineOfSystem(Spec):
    """What the figures depend on besides the machine's parts."""

    hostname: str
    cpu: str | None = None
    cores: int = Field(ge=1)
    memory_bytes: int = Field(ge=1)
    kernel: str
    python: str
    torch: str
    nccl: str | None = None
    cuda: str | None = None
    driver: str | None = None


class DeviceOfSystem(Spec):
    """What computes."""

    kind: Device
    name: str = Field(min_length=1)
    """A GPU's as the driver has it, a CPU's model."""
    count: int = Field(ge=1)
    """GPUs, or ranks that were measured side by side on cores of their own."""
    memory_bytes: int = Field(ge=1)
    threads: int = Field(ge=1)
    """Of a rank."""


class Compute(Spec):
    """What one rank's device does, the other ranks doing the same beside it."""

    gemms: tuple[GemmTime, ...] = Field(min_length=1)
    attention: tuple[AttentionTime, ...] = ()
    copies: tuple[CopyTime, ...] = Field(min_length=1)
    optimizer: tuple[OptimizerTime, ...] = Field(min_length=1)
    launch: LaunchTime
    steps: tuple[StepTime, ...] = ()


class System(Spec):
    """One machine, measured."""

    format: Literal["broadgauge system"]
    version: Literal[1]
    measured_unix_s: float = Field(gt=0)
    broadgauge: str
    machine: MachineOfSystem
    device: DeviceOfSystem
    compute: Compute
    paths: tuple[PathTimes, ...] = ()
    trained: tuple[TrainedStep, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be measured, in sentences."""
