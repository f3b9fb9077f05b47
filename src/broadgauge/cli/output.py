"""Where do a command's words go? Results to stdout or a file, everything else to stderr."""

import os
import sys
from pathlib import Path

from broadgauge.specs.errors import InputError


def write(text: str) -> None:
    """Result text, as it is."""
    sys.stdout.write(text)
    sys.stdout.flush()


def say(text: str) -> None:
    """A line about what is going on."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def write_file(path: Path, text: str) -> None:
    """The whole file or none of it: an older one stays until the new one is there."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path} can't be written: {error.strerror}") from None
