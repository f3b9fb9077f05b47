"""`--usd-per-gpu-hour` and `--tokens`: what is paid, and for how much?"""

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broadgauge.specs.cost import Cost

TOKENS_HELP = "also days and dollars of a training of so many: `300B`, `1.5T`"
PRICE_HELP = "instead of the catalog's price"
NODE_PRICE_HELP = "of a whole node, instead of a GPU's price"
TOKENS_HINT = "--tokens 300B, or 1.5T"


def add_flags(group: Any) -> None:
    """Declares them for predictions, on a parser or a group of one."""
    group.add_argument("--usd-per-gpu-hour", metavar="USD", help=PRICE_HELP)
    group.add_argument("--tokens", metavar="N", help=TOKENS_HELP)


def add_measured_flags(parser: argparse.ArgumentParser) -> None:
    """Declares them for what was measured."""
    group = parser.add_argument_group("what it costs")
    group.add_argument("--usd-per-gpu-hour", metavar="USD", help=PRICE_HELP)
    group.add_argument("--usd-per-node-hour", metavar="USD", help=NODE_PRICE_HELP)
    group.add_argument("--tokens", metavar="N", help=TOKENS_HELP)


def read_tokens(options: argparse.Namespace) -> int | None:
    """`1.5T` → 1.5e12; None: nothing was said. Raises InputError."""
    from broadgauge.specs.errors import InputError
    from broadgauge.specs.units import parse_token_count

    text = options.tokens
    if text is None:
        return None
    try:
        count = parse_token_count(text)
    except ValueError:
        raise InputError(f"--tokens {text}: no number of tokens", hint=TOKENS_HINT) from None
    assert isinstance(count, int)
    return count


def read_price(options: argparse.Namespace, flag: str = "--usd-per-gpu-hour") -> float | None:
    """None: nothing was said. Raises InputError."""
    import math

    from broadgauge.specs.cost import MOST_USD_PER_HOUR
    from broadgauge.specs.errors import InputError

    text = getattr(options, flag.removeprefix("--").replace("-", "_"))
    if text is None:
        return None
    try:
        usd = float(text.strip().removeprefix("$"))
    except ValueError:
        usd = math.nan
    if not 0 <= usd <= MOST_USD_PER_HOUR:
        raise InputError(f"{flag} {text}: not a price", hint=f"{flag} 2.95, in US dollars")
    return usd


def read_cost(options: argparse.Namespace) -> "Cost | None":
    """What the flags of a measured run's view say; None: nothing. Raises InputError."""
    from broadgauge.specs.errors import InputError

    of_gpu, of_node = read_price(options), read_price(options, "--usd-per-node-hour")
    tokens = read_tokens(options)
    if of_gpu is not None and of_node is not None:
        raise InputError("--usd-per-gpu-hour and --usd-per-node-hour: one of them")
    if (of_gpu, of_node, tokens) == (None, None, None):
        return None
    from broadgauge.specs.cost import Cost

    return Cost(usd_per_gpu_hour=of_gpu, usd_per_node_hour=of_node, tokens=tokens)
