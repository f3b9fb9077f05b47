"""A training's task as a rank gets it, for tests in one process."""

from broadgauge.messages.tasks import TrainTask
from broadgauge.specs.tasks import train_task as task_of_training
from broadgauge.specs.workload import GptModel, TrainWorkload

TINY = GptModel(layers=2, hidden=32, heads=2, seq_len=16)


def train_task(**keys: object) -> TrainTask:
    """Of a tiny model unless another is given."""
    return task_of_training(TrainWorkload.model_validate({"kind": "train", "model": TINY} | keys))
