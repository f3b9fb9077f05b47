"""A training's task as a rank gets it, and a trainer of it, for tests in one process."""

from broadgauge.messages.tasks import TrainTask
from broadgauge.probes.calibration.steps import ALONE
from broadgauge.probes.devices import CpuDevice
from broadgauge.probes.training.sources import read_data
from broadgauge.probes.training.trainer import Trainer
from broadgauge.specs.workloads.tasks import train_task as task_of_training
from broadgauge.specs.workloads.workload import LlamaModel, TrainWorkload

from .training_launch import TINY

LLAMA = LlamaModel(
    kind="llama", layers=2, hidden=32, heads=4, kv_heads=2, ffn_hidden=48, seq_len=16
)
MIXTURE = LLAMA.model_copy(update={"experts": 8, "experts_per_token": 2, "bias": "all"})


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
