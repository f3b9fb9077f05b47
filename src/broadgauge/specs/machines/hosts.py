"""Which machines does `platform: hosts` run on, and how are they reached?"""

from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

from broadgauge.specs.base import InOneWord, Spec

Destination = Annotated[str, StringConstraints(pattern=r"^[^\s-][^\s]*$", max_length=255)]
"""As your ssh takes it; no option."""


class Host(Spec):
    """A machine that your own ssh reaches without a prompt. Text alone is its `ssh`."""

    ssh: Destination
    """A name of your ~/.ssh/config, `user@host`, or an address."""
    python: str = Field(default="python3", min_length=1)
    """The Python that has torch there, 3.10 or newer; a path, or a name in that user's PATH."""
    working_folder: str | None = Field(default=None, min_length=1)
    """Where your commands run there, and where their relative paths start; null: the home
    folder."""


AnyHost = Annotated[Host, BeforeValidator(InOneWord("ssh"))]
