"""What is a finding of several cases together, which no trial of one of them shows?"""

from dataclasses import dataclass

from broadgauge.results.model import CaseSummary
from broadgauge.specs.records.record import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFinding:
    """A finding, and the cases that show it."""

    finding: Finding
    cases: tuple[CaseSummary, ...]
