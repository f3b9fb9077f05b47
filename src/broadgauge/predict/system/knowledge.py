"""What does a system file teach the predictor of its GPU? Factors, by steps that were measured.

The training steps of one rank calibrate kernels, attention, memory and launches of the GPU in the
catalog, for any model and strategy and with an interval; steps.py is narrower and nearer: the
reference trainer on that very machine.
"""

from collections.abc import Sequence
from dataclasses import replace

from broadgauge.catalog.gpus import Gpu, find_gpu
from broadgauge.predict.asking.workload_case import training_case
from broadgauge.predict.calibration.factors import Observation, fit
from broadgauge.predict.case import Fabric, own_gpu_of
from broadgauge.predict.facts.knowledge import Knowledge
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.system import System
from broadgauge.specs.workloads.workload import TrainWorkload


def calibrated_by(system: System, knowledge: Knowledge, gpu: Gpu | None = None) -> Knowledge:
    """The same knowledge with what the file says of its GPU. Raises InputError.

    `gpu`: whose facts it has; None: those of the shipped catalog.
    """
    return fit(observations_of(system, gpu), knowledge)


def gpu_of(system: System, gpus: Sequence[Gpu] | None = None, asked: Gpu | None = None) -> Gpu:
    """The entry of what was measured, among `gpus` or the shipped ones; `asked` stands for a GPU
    that is in none. Raises InputError."""
    name, host = system.device.name, system.machine.hostname
    if system.device.kind == "cpu":
        raise InputError(
            f"the system file of {host} is of cores ({name}), and predictions are of GPUs",
            hint="`predict EXPERIMENT --system`, `whatif --system` and `calibrate --check` take it "
            "for those cores",
        )
    gpu = find_gpu(name, gpus) or asked
    if gpu is None:
        raise InputError(
            f"the system file of {host} is of a GPU that the catalog doesn't know: {name}",
            hint="--gpu NAME lends it the memory, price and links of another; or --catalog FILE "
            "with an entry of its own",
        )
    return gpu


def observations_of(system: System, gpu: Gpu | None = None) -> tuple[Observation, ...]:
    """Its steps, as trainings of one GPU. Raises InputError."""
    gpu = gpu_of(system) if gpu is None else gpu
    return tuple(
        Observation(
            case=replace(
                training_case(
                    TrainWorkload(
                        kind="train", model=step.model, dtype=step.dtype, batch_per_rank=step.batch
                    ),
                    gpu=gpu.name,
                    nodes=1,
                    ranks_per_node=1,
                    fabric=Fabric(),
                ),
                own_gpu=own_gpu_of(gpu),
            ),
            step_time_s=step.time.median_s,
        )
        for step in system.compute.steps
    )
