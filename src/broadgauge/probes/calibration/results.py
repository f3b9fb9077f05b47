"""What was measured of a device? The form that is sent; specs/machines/system.py reads it."""

from dataclasses import dataclass

from broadgauge.messages.model_shape import GptShape
from broadgauge.messages.vocabulary import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long one call takes: the median of its repetitions, and their quartiles."""

    median_s: float
    low_s: float
    """A quarter of the repetitions took less."""
    high_s: float
    repetitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmTime:
    """A linear layer without bias over `tokens` rows: its product, and the two of its backward."""

    dtype: DataType
    tokens: int
    inputs: int
    outputs: int
    forward: Timing
    backward: Timing
    """The gradients of its input and of its weight, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionTime:
    """Causal attention as torch's scaled_dot_product_attention does it here."""

    dtype: DataType
    batch: int
    heads: int
    head_dim: int
    seq_len: int
    forward: Timing
    backward: Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyTime:
    """One tensor copied into another: `size_bytes` are read and as many written."""

    size_bytes: int
    time: Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerTime:
    """A fused AdamW over float32 parameters, all in `tensors` tensors."""

    parameters: int
    tensors: int
    time: Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTime:
    """What the host needs to launch, kernels being too small to matter."""

    operation: Timing
    """One addition, called from Python; mean of a thousand in a row."""
    layer_forward: Timing
    """A block of the reference model on 8 tokens of width 64."""
    layer_backward: Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """A step of the reference trainer on one rank alone, nothing sent."""

    model: GptShape
    dtype: DataType
    batch: int
    """Sequences of a micro-batch."""
    time: Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """What one rank's device does."""

    gemms: tuple[GemmTime, ...]
    attention: tuple[AttentionTime, ...]
    copies: tuple[CopyTime, ...]
    optimizer: tuple[OptimizerTime, ...]
    launch: LaunchTime
    steps: tuple[StepTime, ...]
