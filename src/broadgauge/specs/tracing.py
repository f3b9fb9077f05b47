"""Which steps of a workload are run under the profiler, beside those that are timed?"""

from pydantic import Field

from broadgauge.specs.base import Spec


class Tracing(Spec):
    """Steps under PyTorch's profiler, after all that are timed: what each step's time goes to is
    in the record."""

    steps: int = Field(default=2, ge=1, le=20)
    """Traced steps of each trial; one more runs before them under the profiler and is left out."""


class CommandTracing(Tracing):
    """A launch of its own after the timed one: it is ended when the steps are traced."""

    after_steps: int = Field(default=10, ge=3, le=100_000)
    """Steps of the traced launch before the profiler starts: caches fill, and how often the
    optimizers step in each iteration is seen."""
