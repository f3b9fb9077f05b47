"""What does a probe need to run one trial, and how does it say what it measured?"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from broadgauge.messages.rank import (
    Artifact,
    ArtifactKind,
    Block,
    MarkReached,
    PhaseBegins,
    TrialCommand,
)
from broadgauge.messages.tasks import RankLayout
from broadgauge.messages.vocabulary import Phase
from broadgauge.probes.channel import Channel
from broadgauge.probes.identity import RankIdentity


class RefusedError(Exception):
    """The task can't run here; the message says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One measurement, on this rank."""

    command: TrialCommand
    identity: RankIdentity
    channel: Channel
    enter_phase: Callable[[Phase], None] | None = None
    """Told of each phase before the supervisor is; None: nobody else need know."""
    start_up_s: float | None = None
    """From this process's start to its hello, and from the trial's to its process group; None: the
    kernel does not say."""

    @property
    def trial_id(self) -> str:
        return self.command.trial_id

    @property
    def layout(self) -> RankLayout:
        return self.command.layout

    def begin_phase(self, phase: Phase, detail: str = "") -> None:
        if self.enter_phase is not None:
            self.enter_phase(phase)
        self.channel.send(PhaseBegins(trial_id=self.trial_id, phase=phase, detail=detail))

    def say(self, block: Block) -> None:
        self.channel.send(block)

    def leave(self, path: Path, kind: ArtifactKind) -> None:
        """Names a file, whole and closed, that is to be kept with this trial's record."""
        digest, size_bytes = sha256(), 0
        with path.open("rb") as content:
            while piece := content.read(1 << 20):
                digest.update(piece)
                size_bytes += len(piece)
        self.channel.send(
            Artifact(
                trial_id=self.trial_id,
                name=path.name,
                path=str(path.absolute()),
                size_bytes=size_bytes,
                sha256=digest.hexdigest(),
                kind=kind,
            )
        )

    def mark(self, label: str) -> None:
        """Waits until every rank is here and the counters are read: a barrier by the agent,
        which sends nothing over the network under test."""
        self.channel.send(MarkReached(trial_id=self.trial_id, label=label))
        self.channel.wait_for_release(label)

    @contextmanager
    def between_marks(self, label: str) -> Iterator[None]:
        self.mark(f"{label}:begin")
        yield
        self.mark(f"{label}:end")
