"""System files of machines that never were, whose figures follow from a few rates."""

from broadgauge.specs.machines.system import (
    AttentionTime,
    CollectiveTime,
    Compute,
    CopyTime,
    DeviceOfSystem,
    GemmTime,
    LaunchTime,
    MachineOfSystem,
    OptimizerTime,
    PathTimes,
    StepTime,
    System,
    Timing,
)
from broadgauge.specs.workloads.gpt import GptModel

FLOPS_PER_S = 100e9
COPY_BYTES_PER_S = 10e9
LAUNCH_S = 20e-6
ADAM_S = 2e-9
"""Of a parameter."""
HOST_BYTES_PER_S = 2e9
"""Of the unshaped emulated network."""
HOST_LATENCY_S = 100e-6
MODEL = GptModel(layers=4, hidden=256, heads=4, vocabulary=256, seq_len=64)


def timing(seconds: float) -> Timing:
    return Timing(median_s=seconds, low_s=0.98 * seconds, high_s=1.03 * seconds, repetitions=9)


def gemm(tokens: int, inputs: int, outputs: int, dtype: str = "float32") -> GemmTime:
    forward_s = 2 * tokens * inputs * outputs / FLOPS_PER_S
    return GemmTime.model_validate(
        {
            "dtype": dtype,
            "tokens": tokens,
            "inputs": inputs,
            "outputs": outputs,
            "forward": timing(forward_s),
            "backward": timing(2 * forward_s),
        }
    )


def attention(batch: int, heads: int, seq_len: int, head_dim: int = 64) -> AttentionTime:
    forward_s = 2 * batch * heads * seq_len**2 * head_dim / FLOPS_PER_S
    return AttentionTime(
        dtype="float32",
        batch=batch,
        heads=heads,
        head_dim=head_dim,
        seq_len=seq_len,
        forward=timing(forward_s),
        backward=timing(2.5 * forward_s),
    )


def path(nodes: int = 2, ranks_per_node: int = 1) -> PathTimes:
    sizes = [2**power for power in range(10, 27, 4)]
    ranks = nodes * ranks_per_node
    factors = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 2.0}
    return PathTimes(
        name="between-nodes",
        path="emulated",
        backend="gloo",
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        mtu_bytes=1500,
        round_trip_s=50e-6,
        ceiling_gbps=30.0,
        collectives=tuple(
            CollectiveTime.model_validate(
                {
                    "op": op,
                    "size_bytes": size,
                    "time": timing(
                        HOST_LATENCY_S + factor * (ranks - 1) / ranks * size / HOST_BYTES_PER_S
                    ),
                }
            )
            for op, factor in factors.items()
            for size in sizes
        ),
    )


def compute(*, has_steps: bool = False) -> Compute:
    shapes = [(t, h, o) for h in (64, 256, 1024) for t in (64, 512) for o in (h, 4 * h)]
    steps = (StepTime(model=MODEL, dtype="float32", batch=2, time=timing(0.1)),)
    return Compute(
        gemms=tuple(gemm(*shape) for shape in shapes),
        attention=tuple(attention(*shape) for shape in ((1, 4, 64), (4, 4, 128), (1, 4, 512))),
        copies=tuple(
            CopyTime(size_bytes=size, time=timing(2 * size / COPY_BYTES_PER_S))
            for size in (2**20, 2**26)
        ),
        optimizer=tuple(
            OptimizerTime(parameters=size, tensors=64, time=timing(1e-4 + ADAM_S * size))
            for size in (2**18, 2**23)
        ),
        launch=LaunchTime(
            operation=timing(LAUNCH_S),
            layer_forward=timing(15 * LAUNCH_S),
            layer_backward=timing(20 * LAUNCH_S),
        ),
        steps=steps if has_steps else (),
    )


def system(*, has_steps: bool = False) -> System:
    return System(
        format="broadgauge system",
        version=1,
        measured_unix_s=1_800_000_000,
        broadgauge="0.1.0",
        machine=MachineOfSystem(
            hostname="toy",
            cpu="Toy CPU",
            cores=2,
            memory_bytes=24 * 10**9,
            kernel="6.18",
            python="3.11.7",
            torch="2.11.0",
        ),
        device=DeviceOfSystem(
            kind="cpu", name="Toy CPU", count=2, memory_bytes=24 * 10**9, threads=1
        ),
        compute=compute(has_steps=has_steps),
        paths=(path(),),
    )
