"""Is the factor of all waiting limits one that can be used? Asked before anything is waited for."""

import os

from broadgauge.messages.waiting_limits import FACTOR_HINT, WrongFactor, read_factor
from broadgauge.specs.errors import InputError


def refuse_wrong_factor() -> None:
    """Raises InputError."""
    try:
        read_factor(os.environ)
    except WrongFactor as wrong:
        raise InputError(str(wrong), hint=FACTOR_HINT) from None
