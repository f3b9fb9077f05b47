"""Trainings as the oracle plays them: DDP, FSDP2, HSDP, and what can be planted in them."""

from collections.abc import Callable

from tests.traces.synthetic import COMMUNICATION, COMPUTE, GRADIENTS, Job, Played

Plant = Callable[[Job, Played, str], None]
"""Called for each rank at each place: `load`, `forward`, `backward`, `optimizer`."""
LAYERS = 3
"""Of the small jobs; fsdp2() takes another number."""
ALL_GATHERS, REDUCES = COMMUNICATION, GRADIENTS


def nothing(job: Job, rank: Played, place: str) -> None:
    """No plant."""


def saved(job: Job, rank: Played, place: str) -> None:
    """A checkpoint in every step's end."""
    if place == "optimizer":
        with job.under(rank, "save_checkpoint", "checkpoint"):
            job.sleep(rank, 5000)


def slept(time_us: int, *, at: str, rank: int | None = None) -> Plant:
    """A sleep at one place, of one rank or of all; in the data loader under its own range."""

    def plant(job: Job, played: Played, place: str) -> None:
        if place != at or rank not in (None, played.rank):
            return
        if at == "load":
            job.load(played, time_us)
        else:
            job.sleep(played, time_us)

    return plant


def ddp(
    *,
    num_ranks: int = 2,
    steps: int = 3,
    first_traced: int = 0,
    plant: Plant = nothing,
    kernel_us: int = 700,
    transfer_us: int = 900,
    late_us: tuple[int, ...] = (),
    delay_us: int = 0,
    is_synchronising: bool = True,
    gap_us: int = 0,
) -> Job:
    """Buckets are reduced during the backward pass. `late_us`: each rank's longer kernels."""
    job = Job(num_ranks)
    job.first_traced, job.gap_us = first_traced, gap_us
    later = dict(enumerate(late_us))
    for number in range(steps):
        with job.step(number):
            for rank in job.ranks:
                job.load(rank, 120)
                plant(job, rank, "load")
                job.copy(rank, 40)
                for layer in range(LAYERS):
                    job.kernel(rank, kernel_us, name=f"gemm_{layer}")
                    if layer == 1:
                        plant(job, rank, "forward")
            for layer in range(LAYERS):
                for rank in job.ranks:
                    time_us = 2 * kernel_us + later.get(rank.rank, 0)
                    job.kernel(rank, time_us, name=f"gemm_backward_{layer}")
                    if layer == 1:
                        plant(job, rank, "backward")
                    job.wait(rank, COMMUNICATION, COMPUTE)
                lost = delay_us if layer == LAYERS - 1 else 0
                job.collective("all_reduce", 1 << 20, transfer_us, delay_us=lost)
            for rank in job.ranks:
                job.wait(rank, COMPUTE, COMMUNICATION)
                job.kernel(rank, 200, name="multi_tensor_apply_adam")
                plant(job, rank, "optimizer")
                if is_synchronising:
                    job.synchronise(rank)
    return job


def fsdp2(
    *,
    num_ranks: int = 2,
    steps: int = 2,
    kernel_us: int = 500,
    transfer_us: int = 350,
    layers: int = LAYERS,
) -> Job:
    """All-gathers on one stream, reduce-scatters on another, copies in and out on the compute's."""
    job = Job(num_ranks)
    for number in range(steps):
        with job.step(number):
            for rank in job.ranks:
                job.load(rank, 90)
            for layer in range(layers):
                _gather(job, layer, transfer_us)
                for rank in job.ranks:
                    job.kernel(rank, kernel_us, name=f"gemm_{layer}")
            for layer in reversed(range(layers)):
                _gather(job, layer, transfer_us)
                for rank in job.ranks:
                    job.kernel(rank, 2 * kernel_us + 17 * rank.rank, name=f"back_{layer}")
                _reduce(job, "0", transfer_us)
            _optimizer(job)
    return job


def hsdp(*, steps: int = 2, kernel_us: int = 400, transfer_us: int = 300) -> Job:
    """Four ranks: shards within {0, 1} and {2, 3}, replicas {0, 2} and {1, 3}."""
    job = Job(4)
    job.groups = {"1": (0, 1), "2": (2, 3), "3": (0, 2), "4": (1, 3)}
    for number in range(steps):
        with job.step(number):
            for rank in job.ranks:
                job.load(rank, 60 + 100 * (rank.rank == 3))
            for layer in range(LAYERS):
                for group in ("1", "2"):
                    _gather(job, layer, transfer_us, group=group)
                for rank in job.ranks:
                    job.kernel(rank, kernel_us, name=f"gemm_{layer}")
            for layer in reversed(range(LAYERS)):
                for rank in job.ranks:
                    job.kernel(rank, 2 * kernel_us, name=f"back_{layer}")
                for group in ("1", "2"):
                    _reduce(job, group, transfer_us)
                for group in ("3", "4"):
                    job.collective("all_reduce", 1 << 18, 500, group=group, stream=REDUCES)
            _optimizer(job)
    return job


def replayed(*, steps: int = 3) -> Job:
    """The whole model is one graph, launched once a step."""
    job = Job(2)
    for number in range(steps):
        with job.step(number):
            for rank in job.ranks:
                job.load(rank, 50)
                job.graph(rank, [300, 250, 410, 90])
                job.wait(rank, COMMUNICATION, COMPUTE)
            job.collective("all_reduce", 1 << 16, 220)
            for rank in job.ranks:
                job.wait(rank, COMPUTE, COMMUNICATION)
                job.graph(rank, [80])
                if number == steps - 1:
                    job.synchronise(rank)
    return job


def _gather(job: Job, layer: int, transfer_us: int, *, group: str = "0") -> None:
    for member in job.groups[group]:
        rank = job.ranks[member]
        with job.under(rank, f"FSDP::all_gather (layers.{layer})"):
            operator = "fsdp::all_gather_copy_in"
            _copy(job, rank, 30, operator=operator, name="foreach_copy", stream=ALL_GATHERS)
    job.collective("all_gather", 1 << 19, transfer_us, group=group, stream=ALL_GATHERS)
    for member in job.groups[group]:
        rank = job.ranks[member]
        job.wait(rank, COMPUTE, ALL_GATHERS)
        name = "split_with_sizes_copy_out_contiguous_no_cast_kernel"
        _copy(job, rank, 45, operator="fsdp::split_with_sizes_copy", name=name, stream=COMPUTE)


def _reduce(job: Job, group: str, transfer_us: int) -> None:
    for member in job.groups[group]:
        rank = job.ranks[member]
        job.wait(rank, REDUCES, COMPUTE)
        name = "chunk_cat_cuda_kernel<float>"
        _copy(job, rank, 25, operator="fsdp::chunk_cat", name=name, stream=REDUCES)
    job.collective("reduce_scatter", 1 << 19, transfer_us, group=group, stream=REDUCES)


def _copy(job: Job, rank: Played, time_us: int, *, operator: str, name: str, stream: int) -> None:
    job.kernel(rank, time_us, name=name, kind="fsdp_copies", stream=stream, operator=operator)


def _optimizer(job: Job) -> None:
    for rank in job.ranks:
        job.wait(rank, COMPUTE, REDUCES)
        job.kernel(rank, 150, name="multi_tensor_apply_adam")
        job.synchronise(rank)
