"""How long does nccl-tests find each collective to take, between the same ranks?

For each collective and size every rank runs nccl-tests' program once, as one process of one job.
The trial's marks stand around what it times out of place, so that the bytes counted are those of
the timed iterations and of nothing else. How many there are is decided as for torch: by a warm-up
of torch's own, within the task's budget; nccl-tests then times as many in place, too.

The figure is one mean over the iterations, of the slowest rank (`-a 3`): nccl-tests times all its
iterations together, each right after the one before, without a barrier between them.
"""

import contextlib
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from broadgauge.messages.rank import CollectiveBlock
from broadgauge.messages.tasks import CollectivesTask, RankLayout
from broadgauge.messages.vocabulary import DATA_TYPE_BYTES, CollectiveOp, DataType, Phase
from broadgauge.probes.collectives.iterations import affordable_iterations
from broadgauge.probes.collectives.operation import Operation
from broadgauge.probes.collectives.sizes import even_size_bytes
from broadgauge.probes.devices import Device
from broadgauge.probes.nccl_tests.output import Output
from broadgauge.probes.nccl_tests.programs import Program, find_program
from broadgauge.probes.nccl_tests.run import ProgramRun, run_program
from broadgauge.probes.nccl_tests.workplace import workplace
from broadgauge.probes.trial import RefusedError, Trial
from broadgauge.wording.amounts import show_size

ENGINE = "nccl-tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What all measurements of a trial share on this rank."""

    trial: Trial
    task: CollectivesTask
    device: Device
    folder: Path
    """The workplace, the same on all ranks."""


def measure_with_nccl_tests(trial: Trial, task: CollectivesTask, device: Device) -> None:
    """Every data type, collective and size, the smallest first. Raises RefusedError."""
    refuse_elsewhere(trial.layout, task)
    programs = {op: find_program(op, os.environ) for op in task.ops}
    with _shared_workplace(trial, device) as folder:
        workplace = Workplace(trial=trial, task=task, device=device, folder=folder)
        for dtype in task.dtypes:
            for op in task.ops:
                for size_bytes in sizes_of(op, dtype, task, trial.identity.world_size):
                    _measure_size(workplace, programs[op], (op, dtype, size_bytes))


def refuse_elsewhere(layout: RankLayout, task: CollectivesTask) -> None:
    """nccl-tests is NCCL on GPUs, and has no pairs of ranks. Raises RefusedError."""
    if layout.device != "cuda" or layout.backend != "nccl":
        on = "CPUs" if layout.device == "cpu" else "GPUs"
        raise RefusedError(
            f"engine nccl-tests measures NCCL on GPUs, and this case is {layout.backend} on {on}: "
            "`engine: torch` measures it"
        )
    if task.pairwise:
        raise RefusedError(
            "engine nccl-tests has no `pairwise`: `engine: torch` measures pairs of ranks"
        )


def sizes_of(
    op: CollectiveOp, dtype: DataType, task: CollectivesTask, ranks: int
) -> tuple[int, ...]:
    """The sizes that torch would measure, smallest first, each once."""
    sizes = (
        even_size_bytes(op, ranks, wanted, DATA_TYPE_BYTES[dtype])
        for wanted in sorted(task.sizes_bytes)
    )
    return tuple(dict.fromkeys(sizes))


def _measure_size(
    workplace: Workplace, program: Program, what: tuple[CollectiveOp, DataType, int]
) -> None:
    op, dtype, size_bytes = what
    trial, task = workplace.trial, workplace.task
    detail = f"{ENGINE} {op} {dtype} {show_size(size_bytes)}"
    trial.begin_phase(Phase.WARM_UP, detail)
    iterations = _agree_on_iterations(workplace, what)
    job = ProgramRun(
        program=program,
        folder=workplace.folder,
        local_rank=trial.identity.local_rank,
        hostname=platform.node(),
        dtype=dtype,
        size_bytes=size_bytes,
        iterations=iterations,
        warm_up_iterations=task.warm_up_iterations,
        check=task.check,
        cuda_graphs=task.cuda_graphs,
    )
    timed = TimedParts(trial, f"{ENGINE}/{op}/{dtype}/{size_bytes}", detail)
    said = run_program(job, os.environ, timed, is_root=trial.identity.rank == 0)
    output: Output = _from_rank_0(said, workplace.device)
    row = output.rows[0]
    trial.say(
        CollectiveBlock(
            trial_id=trial.trial_id,
            label=timed.first,
            op=op,
            dtype=dtype,
            size_bytes=row.size_bytes,
            seconds=(row.time_s,),
            iterations=iterations,
            is_correct=output.is_correct,
            engine=ENGINE,
        )
    )


class TimedParts:
    """Turns what the stand-in sees of a program into the trial's marks.

    Each barrier may begin a timed part, and only the next event tells: a barrier that was followed
    by another one is a `:begin` without an `:end`, which the merger leaves out.
    """

    def __init__(self, trial: Trial, stem: str, detail: str) -> None:
        self._trial, self._stem, self._detail = trial, stem, detail
        self._barriers = 0
        self._timed: list[str] = []

    @property
    def first(self) -> str:
        """The label of the first part: out of place comes before in place.

        Raises RefusedError where there is none.
        """
        if not self._timed:
            raise RefusedError(
                "engine nccl-tests: the program did not call the stand-in for MPI: is its MPI "
                "linked statically?"
            )
        return self._timed[0]

    def before_barrier(self) -> None:
        if not self._barriers:
            self._trial.begin_phase(Phase.MEASURE, self._detail)
        self._barriers += 1
        self._trial.mark(f"{self._stem}/{self._barriers}:begin")

    def after_timed_part(self) -> None:
        label = f"{self._stem}/{self._barriers}"
        self._timed.append(label)
        self._trial.mark(f"{label}:end")


@contextlib.contextmanager
def _shared_workplace(trial: Trial, device: Device) -> Iterator[Path]:
    """One folder for all ranks, made by rank 0."""
    with contextlib.ExitStack() as stack:
        made = None
        if trial.identity.rank == 0:
            made = stack.enter_context(workplace(os.environ))
        folder: Path = _from_rank_0(made, device)
        if not folder.is_dir():
            raise RefusedError(
                f"engine nccl-tests: {folder} of rank 0 is not seen here: all nodes must be on "
                "one machine"
            )
        yield folder
        trial.mark(f"{ENGINE}/leaving")  # no rank needs the folder any more


def _from_rank_0(value: Any, device: Device) -> Any:
    """What rank 0 has. It crosses the network under test, while nothing is timed."""
    values = [value]
    dist.broadcast_object_list(values, src=0, device=device.torch_device)
    return values[0]


def _agree_on_iterations(workplace: Workplace, what: tuple[CollectiveOp, DataType, int]) -> int:
    """How often is it measured? As often as the budget allows by the slowest rank's warm-up, the
    same number on all ranks. torch's memory is given back to the GPU."""
    op, dtype, size_bytes = what
    task, device = workplace.task, workplace.device
    operation = Operation(op, size_bytes, dtype, workplace.trial.identity, device.torch_device)
    operation()
    device.synchronize()
    started_s = time.perf_counter()
    for _ in range(task.warm_up_iterations):
        operation()
    device.synchronize()
    mean_s = (time.perf_counter() - started_s) / task.warm_up_iterations
    slowest_s = torch.tensor([mean_s], device=device.torch_device)
    dist.all_reduce(slowest_s, op=dist.ReduceOp.MAX)
    del operation
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    return affordable_iterations(task, slowest_s.item())
