"""Which figures speak for a user's own command? Those that it was declared to print."""

from dataclasses import dataclass

from broadgauge.results.kinds.kind import KindInResults
from broadgauge.specs.workloads.metrics import Direction, unit_of
from broadgauge.specs.workloads.workload import CommandMetric, CommandWorkload


@dataclass(frozen=True, slots=True)
class CommandInResults(KindInResults):
    """A command as its figures are compared. Whether a metric is of a rank or of the job is the
    user's knowledge, so that nothing is said of scaling."""

    command: CommandWorkload

    @property
    def headline_metrics(self) -> tuple[str, ...]:
        return tuple(metric.name for metric in self.command.metrics)

    @property
    def step_metrics(self) -> tuple[str, ...]:
        return self.headline_metrics

    def direction_of(self, metric: str) -> Direction:
        declared = self._declared(metric)
        if declared is None:
            return KindInResults.direction_of(self, metric)
        return "lower" if declared.lower_is_better else "higher"

    def taken_as(self, metric: str) -> str | None:
        of = "at equal work a rank" if unit_of(metric) == "s" else "of all ranks together"
        return f"{metric} of a command is taken as {of}"

    def samples_left_out(self, metric: str) -> int:
        declared = self._declared(metric)
        return 0 if declared is None else declared.skip_first

    @property
    def counted_by(self) -> str | None:
        """Its first metric's: counters are read at lines of it (merging/command.py)."""
        return self.command.metrics[0].name

    def _declared(self, metric: str) -> CommandMetric | None:
        return next((each for each in self.command.metrics if each.name == metric), None)
