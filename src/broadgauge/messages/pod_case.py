"""What is a rendered job told of its case? `case.json`, which each pod finds.

Ranks of our own workloads run its trials, in every launch alike; `about` is for people, and for
what reads the job's results later.
"""

from dataclasses import dataclass, field

from broadgauge.messages.codec import Decoder, JsonObject
from broadgauge.messages.rank import TrialCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCase:
    """One case, with nothing left to choose."""

    about: JsonObject = field(default_factory=dict)
    """The case as the experiment resolves it; secrets by the names of their variables only."""
    trials: tuple[TrialCommand, ...] = ()
    """Of each launch; empty: the command is the user's own."""
    meet_s: float = 600.0
    """How long a rank waits for all others at a mark."""


POD_CASE: Decoder[PodCase] = Decoder(PodCase)
