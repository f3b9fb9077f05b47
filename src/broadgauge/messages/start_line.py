"""What is a program of ours started with? One line of JSON on its standard input.

There are secrets in it, so nothing of a wrong one is repeated.
"""

import json
from typing import TextIO, TypeVar

from broadgauge.messages.codec import DecodeError, Decoder

T = TypeVar("T")


class WrongStart(Exception):  # noqa: N818  says what is so
    """What stands on standard input starts nothing."""


def read_start(form: Decoder[T], stream: TextIO) -> T:
    """Raises WrongStart."""
    try:
        value = json.loads(stream.readline())
    except (ValueError, RecursionError):  # no UTF-8, no JSON, or too deep
        value = None
    if value is None:
        raise WrongStart("standard input holds no line of JSON: this is started by Broadgauge")
    try:
        return form(value)
    except DecodeError as error:
        told = error.without_value
    raise WrongStart(f"the line on standard input is not what this version is started with: {told}")
