"""Which figures speak for a training?"""

from dataclasses import dataclass
from typing import ClassVar

from broadgauge.results.kinds.kind import KindInResults
from broadgauge.specs.workload import TrainWorkload


@dataclass(frozen=True, slots=True)
class TrainingInResults(KindInResults):
    """A training as its figures are compared."""

    train: TrainWorkload

    scaling_metrics: ClassVar[tuple[str, ...]] = ("tokens_per_s", "samples_per_s")

    @property
    def headline_metrics(self) -> tuple[str, ...]:
        return ("step_time_s",)

    @property
    def step_metrics(self) -> tuple[str, ...]:
        return ("step_time_s", *self.scaling_metrics)

    @property
    def warm_up_steps(self) -> int | None:
        return self.train.warm_up_steps
