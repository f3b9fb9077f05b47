"""What did the measured trainings cost: 10^9 tokens, a run, a whole training?

A price is the one that flags give, else the experiment's, else the catalog's of the GPU that
computed. All GPUs (or nodes) of a case are paid for as long as it runs. No price, no figure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.results.price import Price, catalog_price, said_price
from broadgauge.results.summary import estimate_over
from broadgauge.specs.cost import Cost
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.records.record import Record

HOUR_S = 3600.0
GIGATOKEN = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRun:
    """A training of so many tokens at the measured rate: no restarts, evaluation or waiting."""

    tokens: int
    time_s: Estimate
    usd: Estimate | None
    """None: no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseCost:
    """Of one case. None: no price is known, or no tokens are counted or asked for."""

    price: Price | None
    price_usd_per_hour: float | None
    """Of all its GPUs or nodes."""
    usd_per_gigatoken: Estimate | None
    usd_per_run: Estimate | None
    """Of one trial from its start to its end, warm-up included: once through the command."""
    whole: WholeRun | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCost:
    """Of all cases of which something is known."""

    cases: Mapping[str, CaseCost]
    """By key."""
    total_usd: float | None
    """Of all their trials, failed ones too; None: no price is known."""
    words: tuple[str, ...]
    """Which prices, whose, of when; and why one that was given is not used."""


NO_COST = RunCost(cases={}, total_usd=None, words=())


def cost_of(run: RunSummary, given: Cost | None = None) -> RunCost:
    """`given`: by flags, before what the experiment says. Raises InputError for a node that the
    catalog has no longer."""
    planned = run.plan.cost or Cost()
    tokens = planned.tokens if given is None or given.tokens is None else given.tokens
    is_given = given is not None and given.has_price
    said = given if given is not None and is_given else planned
    costs: dict[str, CaseCost] = {}
    reasons: dict[str, None] = {}
    total_usd = 0.0
    for summary in run.cases:
        price = _price(summary, run, said, "as given" if is_given else "as the experiment says")
        if isinstance(price, str):
            reasons[price] = None
            price = None
        if summary.good and (price is not None or tokens is not None):
            cost = _case_cost(summary, price, tokens)
            costs[summary.case.key] = cost
            total_usd += (cost.price_usd_per_hour or 0.0) * _trials_s(summary) / HOUR_S
    prices = dict.fromkeys(each.price.words for each in costs.values() if each.price is not None)
    return RunCost(
        cases=costs,
        total_usd=total_usd if prices else None,
        words=tuple(prices or reasons),
    )


def _trials_s(summary: CaseSummary) -> float:
    return sum(record.ended_unix_s - record.started_unix_s for record in summary.records)


def _price(summary: CaseSummary, run: RunSummary, said: Cost, whose: str) -> Price | str | None:
    """None: nobody knows one; a text: why the one that was said is not this case's.

    Of what was imported nobody knows how long GPUs were held for it.
    """
    if summary.case.imported is not None:
        return None
    is_gpu = summary.case.device == "cuda"
    if said.has_price:
        return said_price(said, whose, is_gpu=is_gpu)
    return catalog_price(tuple(dict.fromkeys(_gpu_names(summary, run))), None) if is_gpu else None


def _gpu_names(summary: CaseSummary, run: RunSummary) -> Iterator[str]:
    """Of all machines that the case ran on, as their drivers name them."""
    for key in dict.fromkeys(record.environment for record in summary.good):
        environment = run.environments.get(key or "")
        if environment is not None:
            yield from (gpu.name for gpu in environment.gpus)
            yield from (gpu.name for node in environment.nodes for gpu in node.gpus)


def _case_cost(summary: CaseSummary, price: Price | None, tokens: int | None) -> CaseCost:
    a_token = estimate_over(summary.good, seconds_a_token)
    a_run = estimate_over(summary.good, lambda r: r.ended_unix_s - r.started_unix_s)
    hourly = None
    if price is not None:
        case = summary.case
        hourly = price.usd_per_hour(num_nodes=case.nodes, num_gpus=case.world_size)
    a_second = None if hourly is None else hourly / HOUR_S
    return CaseCost(
        price=price,
        price_usd_per_hour=hourly,
        usd_per_gigatoken=_times(_times(a_token, GIGATOKEN), a_second),
        usd_per_run=_times(a_run, a_second),
        whole=_whole(a_token, tokens, a_second),
    )


def _whole(
    a_token: Estimate | None, tokens: int | None, usd_per_s: float | None
) -> WholeRun | None:
    if a_token is None or tokens is None:
        return None
    time_s = _times(a_token, tokens)
    assert time_s is not None
    return WholeRun(tokens=tokens, time_s=time_s, usd=_times(time_s, usd_per_s))


def seconds_a_token(record: Record) -> float | None:
    rate = record.metrics.get("tokens_per_s")
    return 1 / rate if rate else None


def _times(estimate: Estimate | None, factor: float | None) -> Estimate | None:
    """In another unit; None where either is not known."""
    if estimate is None or factor is None:
        return None
    return replace(
        estimate,
        value=estimate.value * factor,
        low=None if estimate.low is None else estimate.low * factor,
        high=None if estimate.high is None else estimate.high * factor,
    )
