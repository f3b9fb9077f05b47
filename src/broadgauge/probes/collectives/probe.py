"""How long does each collective take, size by size, on this rank?

Each iteration begins after a barrier and is timed alone: the merger takes the slowest rank of each
iteration. The barriers' bytes cross the link as well; a block of nothing but barriers tells how
many they are, and the merger takes them off.
"""

import torch
import torch.distributed as dist

from broadgauge.messages.rank import BARRIER, CollectiveBlock
from broadgauge.messages.tasks import CollectivesTask
from broadgauge.messages.vocabulary import DATA_TYPE_BYTES, CollectiveOp, DataType, Phase
from broadgauge.probes.alignment import Alignment
from broadgauge.probes.collectives.graphs import CapturedIterations
from broadgauge.probes.collectives.iterations import affordable_iterations
from broadgauge.probes.collectives.operation import Operation
from broadgauge.probes.collectives.pairwise import measure_pairs
from broadgauge.probes.collectives.sizes import even_size_bytes
from broadgauge.probes.devices import Device
from broadgauge.probes.trial import Trial
from broadgauge.wording.amounts import show_size

BARRIER_ITERATIONS = 50


def measure_collectives(trial: Trial, task: CollectivesTask, device: Device) -> None:
    """Every data type, collective (or pair of ranks) and size, the smallest first."""
    if task.pairwise:
        measure_pairs(trial, task, device)
        return
    ranks = trial.identity.world_size
    align = Alignment(device)
    if ranks > 1:
        _measure_barriers(trial, device, align)
    for dtype in task.dtypes:
        for op in task.ops:
            sizes = (
                even_size_bytes(op, ranks, wanted, DATA_TYPE_BYTES[dtype])
                for wanted in sorted(task.sizes_bytes)
            )
            for size_bytes in dict.fromkeys(sizes):
                _measure_size(trial, (task, device, align), (op, dtype, size_bytes))


def _measure_barriers(trial: Trial, device: Device, align: Alignment) -> None:
    trial.begin_phase(Phase.WARM_UP, "barriers")
    align()
    device.synchronize()
    trial.begin_phase(Phase.MEASURE, "barriers")
    with trial.between_marks(BARRIER):
        clock = device.clock()
        clock.tick()
        for _ in range(BARRIER_ITERATIONS):
            align()
            clock.tick()
        seconds = clock.intervals_s()
    trial.say(
        CollectiveBlock(
            trial_id=trial.trial_id,
            label=BARRIER,
            op=BARRIER,
            dtype="float32",
            size_bytes=0,
            seconds=seconds,
            is_correct=None,
        )
    )


def _measure_size(
    trial: Trial,
    how: tuple[CollectivesTask, Device, Alignment],
    what: tuple[CollectiveOp, DataType, int],
) -> None:
    task, device, align = how
    op, dtype, size_bytes = what
    detail, label = f"{op} {dtype} {show_size(size_bytes)}", f"{op}/{dtype}/{size_bytes}"
    trial.begin_phase(Phase.WARM_UP, detail)
    operation = Operation(op, size_bytes, dtype, trial.identity, device.torch_device)
    warm_up = time_iterations(operation, task.warm_up_iterations, align, device)
    iterations = _agree_on_iterations(task, warm_up, device)
    captured = None
    if task.cuda_graphs:
        captured = CapturedIterations(operation, iterations, align, device)
    trial.begin_phase(Phase.MEASURE, detail)
    with trial.between_marks(label):
        if captured is None:
            seconds = time_iterations(operation, iterations, align, device)
        else:
            seconds = captured.replay()
    trial.say(
        CollectiveBlock(
            trial_id=trial.trial_id,
            label=label,
            op=op,
            dtype=dtype,
            size_bytes=size_bytes,
            seconds=seconds,
            is_correct=_check(operation, captured) if task.check else None,
        )
    )
    if captured is not None:
        captured.release()


def _check(operation: Operation, captured: CapturedIterations | None) -> bool | None:
    return operation.check() if captured is None else operation.check(captured.call_once)


def time_iterations(
    operation: Operation, iterations: int, align: Alignment, device: Device
) -> tuple[float, ...]:
    """How long does each call take, after a barrier that is not counted?"""
    clock = device.clock()
    for _ in range(iterations):
        align()
        clock.tick()
        operation()
        clock.tick()
    return clock.intervals_s()[::2]


def _agree_on_iterations(
    task: CollectivesTask, warm_up_s: tuple[float, ...], device: Device
) -> int:
    """How often is it measured? As often as the budget allows by the slowest rank's warm-up,
    its first iteration left out where there are more; the same number on all ranks."""
    counted_s = warm_up_s[1:] or warm_up_s
    mean_s = torch.tensor([sum(counted_s) / len(counted_s)], device=device.torch_device)
    dist.all_reduce(mean_s, op=dist.ReduceOp.MAX)
    return affordable_iterations(task, mean_s.item())
