"""A training's task as a rank gets it, and a trainer of it, for tests in one process."""

from broadgauge.messages.tasks import TrainTask
from broadgauge.probes.calibration.steps import ALONE
from broadgauge.probes.devices import CpuDevice
from broadgauge.probes.training.sources import read_data
from broadgauge.probes.training.trainer import Trainer
from broadgauge.specs.workloads.tasks import train_task as task_of_training
from broadgauge.specs.workloads.workload import TrainWorkload

from .training_launch import TINY


def train_task(**keys: object) -> TrainTask:
    """Of a tiny model unless another is given."""
    return task_of_training(TrainWorkload.model_validate({"kind": "train", "model": TINY} | keys))


def trainer_of(**keys: object) -> Trainer:
    """One rank's, with its weights drawn."""
    task = train_task(**keys)
    return Trainer(task, 0, ALONE, CpuDevice(), read_data(task.text, task.model.vocabulary))


def losses(**keys: object) -> tuple[float | None, ...]:
    """Of four steps of one rank."""
    return trainer_of(**keys).timed_steps(range(4))[1]
