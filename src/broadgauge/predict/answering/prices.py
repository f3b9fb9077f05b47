"""What does an hour of each case's GPU cost, and who says so?"""

import functools
import math
from collections.abc import Sequence

from broadgauge.catalog.catalog import Catalog
from broadgauge.predict.answering.answers import Prices
from broadgauge.predict.case import TrainingCase
from broadgauge.specs.errors import InputError


def prices_of(
    cases: Sequence[TrainingCase], catalog: Catalog, usd_per_gpu_hour: float | None = None
) -> tuple[Prices, list[str]]:
    """A price for each case, and the words that say whose and of when.

    `usd_per_gpu_hour`: the user's own, for all. Raises InputError where that is none.
    """
    own = usd_per_gpu_hour
    if own is not None:
        if not (math.isfinite(own) and own >= 0):
            raise InputError(f"--usd-per-gpu-hour {own:g}: not a price")
        return (lambda _case: float(own)), [f"${own:.4g} for a GPU and hour (as given)"]

    nodes = {each.name for each in catalog.nodes}

    @functools.cache
    def known(gpu: str, node: str) -> tuple[float, str] | None:
        """A node's own price: another cloud's may be a quarter of it."""
        found = catalog.gpu_price(gpu, node if node in nodes else None)
        if found is None or (node in nodes and found.price.node != node):
            return None
        is_own = ("prices", found.price.name) in catalog.places
        lowest = "" if node in nodes or is_own else ", the lowest known"
        date = found.price.date or "no date"
        return found.price_usd_per_hour, f"{found.price.name}, {date}{lowest}"

    def price(case: TrainingCase) -> float | None:
        found = known(case.gpu, case.name)
        return None if found is None else found[0]

    kinds = dict.fromkeys((case.gpu, case.name) for case in cases)
    found = [(gpu, entry) for gpu, node in kinds if (entry := known(gpu, node)) is not None]
    words = [f"${usd:.4g} for a GPU ({gpu}) and hour ({whose})" for gpu, (usd, whose) in found]
    unpriced = [node for gpu, node in kinds if node in nodes and known(gpu, node) is None]
    if unpriced:
        words.append(f"no price of {', '.join(dict.fromkeys(unpriced))} is known")
    return price, list(dict.fromkeys(words))
