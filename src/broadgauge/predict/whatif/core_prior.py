"""What does a core compute where nothing was measured? Proportions of a training's pieces, no more.

A what-if without a system file scales them until a step without communication is the measured one,
so only their ratios matter. Source: `broadgauge calibrate` on machine A of docs/measurements.md,
one thread a rank.
"""

from functools import cache

from broadgauge.specs.machines.system import (
    AttentionTime,
    Compute,
    CopyTime,
    DeviceOfSystem,
    GemmTime,
    LaunchTime,
    MachineOfSystem,
    OptimizerTime,
    System,
    Timing,
)

PRODUCT_FLOPS_PER_S = 80e9
ATTENTION_FLOPS_PER_S = 15e9
COPY_BYTE_PER_S = 9e9
ADAM_S, ADAM_FIXED_S = 1.9e-9, 1e-3
"""Of a parameter, and of a step."""
OPERATION_S, LAYER_FORWARD_S, LAYER_BACKWARD_S = 15e-6, 0.5e-3, 0.9e-3


@cache
def core_prior() -> System:
    """A machine of such cores."""
    tokens, hidden, length = 128, 256, 64
    product_s = 2 * tokens * hidden * hidden / PRODUCT_FLOPS_PER_S
    core_s = 2 * 8 * length**2 * 64 / ATTENTION_FLOPS_PER_S
    small, large = 2**18, 2**23
    return System(
        format="broadgauge system",
        version=1,
        measured_unix_s=1,
        broadgauge="",
        machine=MachineOfSystem(
            hostname="", cores=1, memory_bytes=10**9, kernel="", python="", torch=""
        ),
        device=DeviceOfSystem(kind="cpu", name="a core", count=1, memory_bytes=10**9, threads=1),
        compute=Compute(
            gemms=(
                GemmTime(
                    dtype="float32",
                    tokens=tokens,
                    inputs=hidden,
                    outputs=hidden,
                    forward=_exactly(product_s),
                    backward=_exactly(2 * product_s),
                ),
            ),
            attention=(
                AttentionTime(
                    dtype="float32",
                    batch=2,
                    heads=4,
                    head_dim=64,
                    seq_len=length,
                    forward=_exactly(core_s),
                    backward=_exactly(2.5 * core_s),
                ),
            ),
            copies=(CopyTime(size_bytes=2**26, time=_exactly(2 * 2**26 / COPY_BYTE_PER_S)),),
            optimizer=tuple(
                OptimizerTime(
                    parameters=size, tensors=64, time=_exactly(ADAM_FIXED_S + ADAM_S * size)
                )
                for size in (small, large)
            ),
            launch=LaunchTime(
                operation=_exactly(OPERATION_S),
                layer_forward=_exactly(LAYER_FORWARD_S),
                layer_backward=_exactly(LAYER_BACKWARD_S),
            ),
        ),
    )


def _exactly(seconds: float) -> Timing:
    return Timing(median_s=seconds, low_s=seconds, high_s=seconds, repetitions=1)
