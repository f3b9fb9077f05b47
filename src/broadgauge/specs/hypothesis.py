"""What does the author of an experiment expect, and what was published of similar cases?

A hypothesis is a bound on a figure of cases; the report says supported, refuted or can't tell.
"""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from broadgauge.specs.base import Name, Spec
from broadgauge.specs.selector import CaseSelector
from broadgauge.specs.workloads.metrics import unit_of

Quantity = Literal["value", "ratio", "efficiency"]


def _check_metric(name: str) -> str:
    if unit_of(name) is None:
        raise ValueError("a metric's name ends with its unit, such as `step_time_s`, or is a loss")
    return name


class Hypothesis(Spec):
    """`quantity` of the metric over `cases` lies within `at_least` and `at_most`.

    value: the metric itself. ratio: the metric of each case over that of its partner in `over`,
    by the mean log-ratio of interleaved pairs. efficiency: throughput of each case over that of
    its partner, per rank (1 is linear scaling); without `over`, over the smallest world of the
    same workload.
    """

    name: Name
    """For the report and for `extends`."""
    statement: str = Field(min_length=1, max_length=500)
    """In the author's words: what is believed."""
    metric: str = "step_time_s"
    """What is measured: a metric of the report, or of your own command."""
    quantity: Quantity = "ratio"
    """What of it is bounded: the value itself, its ratio to a partner's, or its efficiency."""
    cases: CaseSelector
    """The statement is about each of them."""
    over: CaseSelector | None = None
    """The partner: of the cases selected here, the one that agrees with the case in everything
    else (workload, network, shape, backend)."""
    at_least: float | None = None
    """Lower bound: in the metric's unit; of a ratio or an efficiency, 1 means equal."""
    at_most: float | None = None
    """Upper bound, as `at_least`; one of them, or both."""

    @field_validator("metric")
    @classmethod
    def _known_unit(cls, name: str) -> str:
        return _check_metric(name)

    @model_validator(mode="after")
    def _has_a_bound(self) -> "Hypothesis":
        if self.at_least is None and self.at_most is None:
            raise ValueError("a bound is missing: `at_least`, `at_most`, or both")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError("`at_least` is larger than `at_most`")
        if self.quantity == "ratio" and self.over is None:
            raise ValueError("a ratio needs `over`: the cases to compare with")
        if self.quantity == "value" and self.over is not None:
            raise ValueError("a value has no `over`: `quantity: ratio` compares")
        return self


class PublishedFigure(Spec):
    """A figure that somebody published, to stand beside ours in the report."""

    label: Annotated[str, Field(min_length=1, max_length=200)]
    """What was measured, in the publication's words: `e-15-6-2, GPT-2 Large, HDR`."""
    metric: str
    """The metric of ours that it stands beside."""
    value: float
    """In the metric's unit; of `over`'s case too where a ratio was published."""
    cases: CaseSelector
    """Exactly one case of this experiment stands for it."""
    over: CaseSelector | None = None
    """Given: `value` is a ratio to this case's metric."""
    source: Annotated[str, Field(min_length=1)]
    """Title and date, and where in it."""
    note: str = ""
    """What differs between theirs and ours: the scale, the hardware."""

    @field_validator("metric")
    @classmethod
    def _known_unit(cls, name: str) -> str:
        return _check_metric(name)
