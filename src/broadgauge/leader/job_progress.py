"""Which trials does the next life of a job run? No I/O: the engine's own rule (engine/run.py).

A failed trial ends its life, and the trials after it have another. A life whose ranks did not come
up uses up one trial; after three such in a row the others are given up.
"""

from collections.abc import Collection, Iterable, Sequence
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

    def lived(self, ran: Sequence[RunTrial]) -> None:
        """A life ended whose ranks came up; these were run, the last one well or not."""
        assert ran or self.is_over, "a life uses up a trial, or none is wanted any more"
        self._drop(trial.command.trial_id for trial in ran)
        self._number += 1
        self._num_lost = 0

    def lost(self, wanted: Sequence[RunTrial]) -> None:
        """The ranks of a life for these did not come up."""
        self._num_lost += 1
        self._number += 1
        gone = wanted if self._num_lost == MOST_LOST_LIVES else wanted[:1]
        self._drop(trial.command.trial_id for trial in gone)

    def skip(self, trial_ids: Collection[str]) -> None:
        """None of these is wanted any more."""
        self._drop(trial_ids)

    def _drop(self, trial_ids: Iterable[str]) -> None:
        gone = frozenset(trial_ids)
        self.left = [trial for trial in self.left if trial.command.trial_id not in gone]
