"""What does a system file teach the predictor of its GPU? Factors, by steps that were measured.

The training steps of one rank calibrate kernels, attention, memory and launches of the GPU in the
catalog, for any model and strategy and with an interval; steps.py is narrower and nearer: the
reference trainer on that very machine.
"""

from broadgauge.catalog.gpus import find_gpu
from broadgauge.predict.asking.workload_case import training_case
from broadgauge.predict.calibration.factors import Observation, fit
from broadgauge.predict.case import Fabric
from broadgauge.predict.facts.knowledge import Knowledge
from broadgauge.specs.errors import InputError
from broadgauge.specs.system import System
from broadgauge.specs.workload import TrainWorkload


def calibrated_by(system: System, knowledge: Knowledge) -> Knowledge:
    """The same knowledge with what the file says of its GPU. Raises InputError."""
    return fit(observations_of(system), knowledge)


def gpu_of(system: System) -> str:
    """The catalog's name of what was measured. Raises InputError."""
    name, host = system.device.name, system.machine.hostname
    if system.device.kind == "cpu":
        raise InputError(
            f"the system file of {host} is of cores ({name}), and predictions are of GPUs",
            hint="`predict EXPERIMENT --system`, `whatif --system` and `calibrate --check` take it "
            "for those cores",
        )
    gpu = find_gpu(name)
    if gpu is None:
        raise InputError(
            f"the system file of {host} is of a GPU that the catalog doesn't know: {name}",
            hint="add it: `broadgauge catalog check` shows what an entry needs",
        )
    return gpu.name


def check_gpu(system: System, asked: str) -> None:
    """Is this GPU the one that was measured? Raises InputError."""
    measured = gpu_of(system)
    if asked != measured:
        raise InputError(
            f"the system file of {system.machine.hostname} is of {measured}, and {asked} is asked",
            hint="leave --system out, or ask for its own GPU",
        )


def observations_of(system: System) -> tuple[Observation, ...]:
    """Its steps, as trainings of one GPU. Raises InputError."""
    gpu = gpu_of(system)
    return tuple(
        Observation(
            case=training_case(
                TrainWorkload(
                    kind="train", model=step.model, dtype=step.dtype, batch_per_rank=step.batch
                ),
                gpu=gpu,
                nodes=1,
                ranks_per_node=1,
                fabric=Fabric(),
            ),
            step_time_s=step.time.median_s,
        )
        for step in system.compute.steps
    )
