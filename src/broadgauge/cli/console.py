"""What do rich's words go through? A console that leaves a broken pipe to the command line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from rich.console import Console

from broadgauge.cli.output import telling


class PlainConsole(Console):
    """Colours nothing by itself, and ends nothing: rich would exit with 1 where `| head` left."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False)

    def on_broken_pipe(self) -> NoReturn:
        """What rich calls while it handles the BrokenPipeError."""
        raise BrokenPipeError


@contextmanager
def results_console() -> Iterator[Console]:
    """A console for results, on stdout. Raises InputError and BrokenPipeError."""
    with telling("stdout"):
        console = PlainConsole()
        console.size = console.size  # asked of the terminal once, not for every line
        yield console
