"""Which trials does the next life of a job run? No I/O: the engine's own rule (engine/run.py).

A failed trial ends its life, and the trials after it have another. A life whose ranks did not come
up uses up one trial; after three such in a row the others are given up.
"""

from dataclasses import dataclass, field

from broadgauge.messages.agent import RunTrial
from broadgauge.messages.leader import Job

MOST_LOST_LIVES = 3
"""As in engine/run.py; a test holds that they are equal."""


@dataclass(slots=True)
class JobProgress:
    """What is left of one job."""

    job: Job
    left: list[RunTrial] = field(default_factory=list)
    _number: int = 0
    _num_lost: int = 0

    @classmethod
    def of(cls, job: Job) -> "JobProgress":
        """All of it is left."""
        return cls(job=job, left=list(job.trials), _number=job.first_life)

    @property
    def is_over(self) -> bool:
        """Is there no trial left to run?"""
        return not self.left

    @property
    def life_id(self) -> str:
        """Of the life to come."""
        return self.job.job_id if self._number == 0 else f"{self.job.job_id}r{self._number}"

    def lived(self, num_trials: int) -> None:
        """A life ended whose ranks came up; so many trials were run, the last one well or not."""
        assert num_trials >= 1, "a life uses up a trial"
        del self.left[:num_trials]
        self._number += 1
        self._num_lost = 0

    def lost(self) -> None:
        """The ranks of a life did not come up."""
        self._num_lost += 1
        self._number += 1
        del self.left[: len(self.left) if self._num_lost == MOST_LOST_LIVES else 1]
