"""What is said to people in the log of a pod? Lines that no leader's frame can be taken for."""

import sys

from broadgauge.messages.frames import plain_line


def log_line(text: str) -> bytes:
    """In UTF-8, whatever the image's locale is. Names and values are others': none of them ends the
    line, and no terminal does as they say."""
    return f"broadgauge: {plain_line(text)}\n".encode(errors="replace")


def say(text: str) -> None:
    """On standard output, which is the container's log."""
    sys.stdout.flush()
    sys.stdout.buffer.write(log_line(text))
    sys.stdout.buffer.flush()
