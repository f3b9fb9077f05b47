"""What does a probe need to run one trial, and how does it say what it measured?"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from broadgauge.probes.channel import Channel
from broadgauge.probes.identity import RankIdentity
from broadgauge.specs.case import Case
from broadgauge.specs.rank_messages import Block, MarkReached, PhaseBegins, TrialCommand
from broadgauge.specs.record import Phase


class RefusedError(Exception):
    """The case can't run here; the message says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One measurement of one case, on this rank."""

    command: TrialCommand
    identity: RankIdentity
    channel: Channel
    enter_phase: Callable[[Phase], None] | None = None
    """Told of each phase before the supervisor is; None: nobody else need know."""

    @property
    def trial_id(self) -> str:
        return self.command.trial_id

    @property
    def case(self) -> Case:
        return self.command.case

    def begin_phase(self, phase: Phase, detail: str = "") -> None:
        if self.enter_phase is not None:
            self.enter_phase(phase)
        self.channel.send(PhaseBegins(trial_id=self.trial_id, phase=phase, detail=detail))

    def say(self, block: Block) -> None:
        self.channel.send(block)

    def mark(self, label: str) -> None:
        """Waits until every rank is here and the counters are read: a barrier by the supervisor,
        which sends nothing over the network under test."""
        self.channel.send(MarkReached(trial_id=self.trial_id, label=label))
        self.channel.wait_for_release(label)

    @contextmanager
    def between_marks(self, label: str) -> Iterator[None]:
        self.mark(f"{label}:begin")
        yield
        self.mark(f"{label}:end")
