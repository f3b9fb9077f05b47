"""`--usd-per-gpu-hour` and `--tokens`: what was paid, and for how much?"""

import argparse
import re
from typing import Any

TOKENS_HELP = "also days and dollars of a training of so many: `300B`, `1.5T`"
PRICE_HELP = "instead of the catalog's price"
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
_TOKENS = re.compile(r"(?P<number>\d+(\.\d*)?(e\d+)?)\s*(?P<unit>[kmbgt]?)", re.IGNORECASE)
MOST_TOKENS = 1e18
MOST_USD = 1e6
"""For an hour of a GPU or a node: more is a mistake."""


def add_flags(group: Any) -> None:
    """Declares them, on a parser or a group of one."""
    group.add_argument("--usd-per-gpu-hour", metavar="USD", help=PRICE_HELP)
    group.add_argument("--tokens", metavar="N", help=TOKENS_HELP)


def read_tokens(options: argparse.Namespace) -> float | None:
    """`1.5T` → 1.5e12; None: nothing was said. Raises InputError."""
    from broadgauge.specs.errors import InputError

    text = options.tokens
    if text is None:
        return None
    match = _TOKENS.fullmatch(text.strip().replace("_", "").replace(",", ""))
    number = 0.0 if match is None else float(match["number"]) * _UNITS[match["unit"].lower()]
    if not 1 <= number <= MOST_TOKENS:
        raise InputError(f"--tokens {text}: no number of tokens", hint="--tokens 300B, or 1.5T")
    return number


def read_price(options: argparse.Namespace, flag: str = "--usd-per-gpu-hour") -> float | None:
    """None: nothing was said. Raises InputError."""
    import math

    from broadgauge.specs.errors import InputError

    text = getattr(options, flag.removeprefix("--").replace("-", "_"))
    if text is None:
        return None
    try:
        usd = float(text.strip().removeprefix("$"))
    except ValueError:
        usd = math.nan
    if not 0 <= usd <= MOST_USD:
        raise InputError(f"{flag} {text}: not a price", hint=f"{flag} 2.95, in US dollars")
    return usd
