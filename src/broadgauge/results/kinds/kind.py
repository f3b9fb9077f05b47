"""What must be known of a workload to compare what was measured of it?"""

from abc import ABC, abstractmethod
from typing import ClassVar

from broadgauge.specs.workloads.metrics import REGISTRY, Direction


class KindInResults(ABC):
    """A workload as its figures are compared."""

    scaling_metrics: ClassVar[tuple[str, ...]] = ()
    """Rates of all ranks together, the best first: what a shape is held against the smallest by."""

    @property
    @abstractmethod
    def headline_metrics(self) -> tuple[str, ...]:
        """Which metrics say how fast a case is? The first speaks for it."""

    @property
    def step_metrics(self) -> tuple[str, ...]:
        """Which metrics tell of single steps, the best first? None: it has no steps."""
        return ()

    def direction_of(self, metric: str) -> Direction:
        """Is less or more of it better?"""
        known = REGISTRY.get(metric)
        return "neither" if known is None else known.direction

    def taken_as(self, metric: str) -> str | None:
        """What is a metric taken as where efficiency is asked and nobody says whether it is of a
        rank or of the job? In words; None: it is known."""
        del metric
        return None

    def samples_left_out(self, metric: str) -> int:
        """How many of the first samples of a metric are not in its series?"""
        del metric
        return 0

    @property
    def counted_by(self) -> str | None:
        """The metric by whose samples a step is counted; None: the ranks count their steps."""
        return None
