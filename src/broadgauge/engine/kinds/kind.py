"""What must the engine know of a workload before any of its ranks starts?"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from broadgauge.engine.shapes import ResolvedCluster
from broadgauge.specs.case import Case
from broadgauge.specs.errors import Problem


class KindInEngine(ABC):
    """A workload as it is planned. Each kind says how long it takes and what it reads."""

    is_duration_known: ClassVar[bool] = True
    """False: `trial_s` is a guess that knows nothing of the case."""

    @abstractmethod
    def trial_s(self, case: Case) -> float:
        """How long does one trial take, its process group included? Wrong by a factor of two is
        normal."""

    def warm_up_s(self, case: Case) -> float:
        """How much of it is warm-up, where that grows with what is asked for? 0: it does not."""
        del case
        return 0.0

    @property
    @abstractmethod
    def uses_folder(self) -> bool:
        """Does what is measured depend on files in the working folder?"""

    def written_bytes(self, case: Case) -> int:
        """Into a storage, by all ranks in one trial; removed at its end."""
        del case
        return 0

    def why_not_run(self, case: Case) -> str | None:
        """What does this workload want that the case's ranks, device or backend can't do? In
        words; None: nothing."""
        del case
        return None

    def problems(self, where: str, cluster: ResolvedCluster) -> Iterator[Problem]:
        """What does it ask for that can't be had in any case on this cluster? `where` is its place
        in the file."""
        del where, cluster
        yield from ()
