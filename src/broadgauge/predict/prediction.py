"""What does a prediction say? A step time, its interval, where it goes and what it rests on."""

from dataclasses import dataclass

from broadgauge.predict.case import Bottleneck, TrainingCase

NORMAL_80 = 1.2816
"""Standard deviations on either side that hold 80 % of a normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A predicted figure and its 80 % interval: in eight of ten cases the truth lies inside."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepParts:
    """Where a step's seconds go, on the rank that ends last; they add up to the step time."""

    compute_s: float
    """Kernels, recomputation included."""
    launch_s: float
    """The GPU waits for its CPU to launch."""
    exposed_intra_node_s: float
    exposed_network_s: float
    """Waiting for communication between nodes with no compute running."""
    bubble_s: float
    """Pipeline stages waiting for each other."""
    optimizer_s: float
    storage_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Bytes on the fullest GPU."""

    parameters_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float
    buffers_bytes: float
    margin_bytes: float
    """Fragmentation, and what CUDA and NCCL take."""
    capacity_bytes: float

    @property
    def states_bytes(self) -> float:
        """Weights, and what training keeps of those that it trains."""
        return self.parameters_bytes + self.gradients_bytes + self.optimizer_bytes

    @property
    def total_bytes(self) -> float:
        """All of it."""
        return self.states_bytes + self.activations_bytes + self.buffers_bytes + self.margin_bytes

    @property
    def is_fitting(self) -> bool:
        """Does it fit?"""
        return self.total_bytes <= self.capacity_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Widened:
    """An interval that is wider, as few have measured trainings of this kind."""

    kind: str
    """`fp8`, `tensor-parallel`: an entry of the catalog's widenings."""
    width_ratio: float
    """Of what kernels make of its halves, as logarithms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The answer to one `TrainingCase`."""

    case: TrainingCase
    step_time_s: Interval
    parts: StepParts
    overlapped_communication_s: float
    """Hidden behind compute."""
    network_bytes: float
    """What a node sends to others in a step; with pipelines, with the boundaries of the second
    stage (of two: the first) and without what tensor parallelism sends between nodes."""
    network_busy_s: float
    """How long its links to others are busy in a step, hidden or waited for; with pipelines, those
    of the first stage, so `network_bytes` over it is no rate there."""
    bound: Bottleneck
    dominant: str
    """The uncertain term that moves the step time most, in words."""
    narrowed_by: str
    """The measurement that would narrow the interval most."""
    is_calibrated: bool
    is_outside: bool
    """Outside of what the residuals were seen on: the interval is a class prior's."""
    widened: Widened | None
    """What makes it unlike most that was measured; None: nothing does, or such a step was."""
    memory: MemoryUse
    tokens_per_s: float
    mfu_ratio: float
    flops_per_token: float
