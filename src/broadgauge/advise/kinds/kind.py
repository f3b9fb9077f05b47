"""What must be known of a workload to say what its figures mean?"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar

from broadgauge.advise.verdicts.verdict import Verdict
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.case import Case
from broadgauge.specs.records.record import Finding, Record

TrialRule = Callable[[Case, Record], Iterator[Finding]]
"""Reads a case and one good trial of it."""


class KindInAdvise(ABC):
    """A workload as it is judged."""

    rules: ClassVar[tuple[TrialRule, ...]] = ()
    """What is looked for in a trial beside what is of any workload (advise/trial_findings.py)."""

    @abstractmethod
    def verdict(self, summary: CaseSummary, run: RunSummary) -> Verdict:
        """What does this case wait for most? At least one of its trials succeeded.

        Rules are imported here where they are used: judging one trial does without numpy.
        """
