"""Which rows and notes say what was measured in dollars?"""

from collections.abc import Iterator

from broadgauge.report.words.cost import days_words, tokens_title, usd_words
from broadgauge.report.words.quantities import interval, show, title_of
from broadgauge.results.cost import CaseCost, RunCost
from broadgauge.specs.estimate import Estimate

MEANINGS = {
    "usd_per_gigatoken": "US dollars for 10⁹ tokens: all GPUs (or nodes) of a case are paid for as "
    "long as it trains",
    "usd_per_run": "US dollars for one trial from its start to its end, warm-up included: once "
    "through the command",
}


def cost_notes(cost: RunCost) -> Iterator[str]:
    """Whose price, of when, and what the run itself cost."""
    for words in cost.words[:-1]:
        yield f"cost: {words}"
    if cost.words:
        spent = "" if cost.total_usd is None else f"; the trials of this run: {_total(cost)}"
        yield f"cost: {cost.words[-1]}{spent}"


def _total(cost: RunCost) -> str:
    return usd_words(cost.total_usd)


def cost_rows(cost: CaseCost | None) -> Iterator[tuple[str, str, str, Estimate]]:
    """Title, value, interval, and the estimate itself; nothing that is not known."""
    if cost is None:
        return
    for name in MEANINGS:
        estimate = getattr(cost, name)
        if estimate is not None:
            yield title_of(name), show(name, estimate.value), interval(name, estimate), estimate
    if cost.whole is None:
        return
    title, time_s, usd = tokens_title(cost.whole.tokens), cost.whole.time_s, cost.whole.usd
    yield f"time of {title}", days_words(time_s.value), _days(time_s), time_s
    if usd is not None:
        yield f"cost of {title}", usd_words(usd.value), interval("whole_usd", usd), usd


def _days(time_s: Estimate) -> str:
    if time_s.low is None or time_s.high is None:
        return "–"
    return f"{days_words(time_s.low)} to {days_words(time_s.high)}"
