"""Where do a command's words go? Results to stdout or a file, everything else to stderr."""

import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from broadgauge.specs.errors import InputError

FACT_COLUMN = 11
"""Where what is said begins, behind its word."""
SENTENCE_COLUMN = 4
"""Where a sentence goes on; what it lists begins before."""


def write(text: str) -> None:
    """Result text, as it is. Raises InputError and BrokenPipeError."""
    with telling("stdout"):
        sys.stdout.write(text)
        sys.stdout.flush()


def write_binary(data: bytes) -> None:
    """A file's bytes. Raises InputError where they would go to a terminal, and BrokenPipeError."""
    if sys.stdout.isatty():
        raise InputError("this is no text for a terminal", hint="--output FILE, or `> FILE`")
    with telling("stdout"):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def say(text: str) -> None:
    """A line about what is going on."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def details_command(run: str) -> str:
    """How the rest of what a run says is printed: `broadgauge show last --details`."""
    return f"{program()} show {shlex.quote(run)} --details"


def say_facts(lines: Iterable[str]) -> None:
    """Lines of a word and what is said of it: where they are read on a terminal, a long one goes on
    below what is said."""
    for line in lines:
        say(_as_read(line, sys.stderr, FACT_COLUMN))


def say_sentence(text: str) -> None:
    """Lines about what is going on, each of which goes on below itself, where they are read on a
    terminal and are longer than it."""
    say(_as_read(text, sys.stderr, SENTENCE_COLUMN))


def write_sentence(text: str) -> None:
    """Lines of a result, as `say_sentence`. Raises InputError and BrokenPipeError."""
    write(_as_read(text, sys.stdout, SENTENCE_COLUMN) + "\n")


def _as_read(text: str, stream: TextIO, indent: int) -> str:
    """Unchanged where no terminal shows it."""
    if not stream.isatty():
        return text
    columns = shutil.get_terminal_size().columns
    return "\n".join(_hanging(line, columns, indent) for line in text.split("\n"))


def _hanging(line: str, columns: int, indent: int) -> str:
    parts = textwrap.wrap(
        line,
        max(columns - 1, 2 * FACT_COLUMN),
        subsequent_indent=" " * indent,
        drop_whitespace=True,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return "\n".join(parts)


@contextmanager
def telling(place: str) -> Iterator[None]:
    """A disk that is full becomes an InputError; a reader that has left stays what it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{place} can't be written: {error.strerror or error}") from error


def open_closed_streams() -> None:
    """`>&-` leaves Python without the stream: what is written there goes nowhere, as asked."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest free one: the stream's own
            os.set_inheritable(descriptor, True)  # noqa: FBT003
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))


def give_up_stdout() -> None:
    """What could not be written must not be tried, and complained of, again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)


def program() -> str:
    """What must the user type to start this program again?"""
    if shutil.which("broadgauge") is not None:
        return "broadgauge"
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m broadgauge"
    return shlex.quote(str(started))


def write_file(path: Path, content: str | bytes) -> None:
    """The whole file or none of it: an older one stays until the new one is there.

    A device or a pipe is written into, never replaced; so is what a link leads to.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
        part = target.with_name(f".{os.getpid()}.part")
        try:
            part.write_bytes(data)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"`{path}` can't be written: {reason}") from None
