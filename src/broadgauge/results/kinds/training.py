"""Which figures speak for a training?"""

from typing import ClassVar

from broadgauge.results.kinds.kind import KindInResults


class TrainingInResults(KindInResults):
    """A training as its figures are compared."""

    scaling_metrics: ClassVar[tuple[str, ...]] = ("tokens_per_s", "samples_per_s")

    @property
    def headline_metrics(self) -> tuple[str, ...]:
        return ("step_time_s",)

    @property
    def step_metrics(self) -> tuple[str, ...]:
        return ("step_time_s", *self.scaling_metrics)
