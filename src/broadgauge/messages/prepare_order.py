"""What is to be on a volume before training, and where? Told to the pod that fetches it, and to the
pods that wait for it.

Each thing lies in a folder of its own below `root`, whose name ends in a checksum of what was asked
for. It gets that name when it is whole, with a file DONE in it, so a folder of that name is whole.
"""

import posixpath
from dataclasses import dataclass
from typing import Literal

from broadgauge.messages.codec import Decoder

VARIABLE = "BROADGAUGE_PREPARE"
"""Of a pod, with the order as JSON."""
DONE = ".broadgauge-done.json"
FetchedKind = Literal["model", "dataset"]
RANK_VARIABLES = {
    "model": "BROADGAUGE_MODEL",
    "dataset": "BROADGAUGE_DATASET",
    "command": "BROADGAUGE_PREPARED",
}
"""By which ranks, and the user's command, find what is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOrder:
    """A model or data set."""

    kind: FetchedKind
    name: str
    """Of its folder, with the checksum."""
    source: str
    """A repository of the Hugging Face hub, a URL, or an absolute path."""
    revision: str | None = None
    """Of a repository; None: the source is none."""
    file: str | None = None
    """Which of its files is meant, by its path in the folder; None: the folder."""
    sha256: str | None = None
    """Of what a URL gives; None: nobody said it."""
    leave_out: tuple[str, ...] = ()
    """Patterns of a repository's files that are not fetched."""
    link: str | None = None
    """Where it is found, too: absolute, on the same volume."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOrder:
    """The user's own, which makes something of what was fetched."""

    name: str
    words: tuple[str, ...]
    folder: str
    """Where it runs."""
    file: str | None = None
    link: str | None = None

    @property
    def kind(self) -> str:
        """As a FetchOrder has one."""
        return "command"


AnyOrder = FetchOrder | CommandOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareOrder:
    """All of it, in the order in which it is made."""

    root: str
    """Absolute; on the volume."""
    maker: str
    """Name of the Job that makes it, for messages."""
    fetched: tuple[FetchOrder, ...] = ()
    command: CommandOrder | None = None

    @property
    def parts(self) -> tuple[AnyOrder, ...]:
        """What must be there before ranks start."""
        return self.fetched if self.command is None else (*self.fetched, self.command)

    def place(self, part: AnyOrder) -> str:
        """The folder that it has when it is whole."""
        return f"{self.root}/{part.name}"

    def content(self, part: AnyOrder) -> str:
        """What is meant of it: the folder, or one file."""
        return self.place(part) if part.file is None else f"{self.place(part)}/{part.file}"

    def variables(self) -> dict[str, str]:
        """Of ranks, and of the command."""
        return {RANK_VARIABLES[part.kind]: self.content(part) for part in self.parts}

    def link_target(self, part: AnyOrder) -> str:
        """Relative: the volume may be mounted elsewhere in other pods."""
        assert part.link is not None
        return posixpath.relpath(self.content(part), posixpath.dirname(part.link))


PREPARE_ORDER: Decoder[PrepareOrder] = Decoder(PrepareOrder)
