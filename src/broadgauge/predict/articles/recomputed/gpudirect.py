"""redhat-gpudirect-2025: hours of a LoRA fine-tuning on two A40 nodes."""

from broadgauge.catalog.articles import Articles
from broadgauge.predict.articles.recomputed.figure import RecomputedFigure


def hours(tables: Articles, network: str) -> float:
    """One published duration."""
    (found,) = (row.hours for row in tables.completion_hours if row.network == network)
    return found


def times_as_fast(tables: Articles, slow: str, fast: str) -> RecomputedFigure:
    """One network's duration over another's."""
    here, there = hours(tables, slow), hours(tables, fast)
    how = f"{here:.3g} over {there:.3g} h, evaluation and checkpoints included"
    return RecomputedFigure(number=here / there, how=how)


def share_lost(tables: Articles, slow: str, fast: str) -> RecomputedFigure:
    """Which part of the slower duration went with the network, if all else is equal?"""
    here, there = hours(tables, slow), hours(tables, fast)
    how = f"({here:.3g} − {there:.3g}) of {here:.3g} h"
    return RecomputedFigure(unit="of the time", number=(here - there) / here, how=how)
