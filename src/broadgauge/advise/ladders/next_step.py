"""What should be measured next, so that a ladder tells what it does not tell yet?"""

from dataclasses import dataclass

from broadgauge.advise.ladders.ladder import Ladder, is_unshaped
from broadgauge.advise.limits import CEILING_OVER_RATE
from broadgauge.predict.sensitivity.ladder import Lack, LadderAnswer, Sensitivity

FURTHER = 4.0
"""Three rates up to so many times the fastest one put two beyond a knee that is next to it."""
WIDER = 1.25
"""A rung so far beyond the rate that is looked for shows it."""
LEAST_GAIN = 1.5
"""Less faster than the fastest rung is not worth a rung."""
SLOWER = 16.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """The rates of one NIC and the launches to run next; nothing where nothing lacks."""

    faster_gbps: tuple[float, ...] = ()
    slower_gbps: tuple[float, ...] = ()
    before_gbps: tuple[float, ...] = ()
    """Rates of one NIC that were measured."""
    launches: int | None = None
    """About so many would tell; None: no launches lack, or more than anybody runs."""
    lacks_unshaped: bool = False
    """A network without a rate would tell."""
    is_found: bool = False
    """The networks were found, and no rate can be set: another network would tell."""

    @property
    def rates_gbps(self) -> tuple[float, ...]:
        """For `--rates`, slowest first; empty where no other rate would show more."""
        if not self.faster_gbps and not self.slower_gbps:
            return ()
        return (*self.slower_gbps, *self.before_gbps, *self.faster_gbps)


def next_step(ladder: Ladder) -> NextStep:
    """What would tell more, as far as this host can carry it?"""
    found = ladder.found
    if found is None:
        return NextStep()
    answers = (found.critical_bytes, found.base_s, found.knee_gbps, found.enough_gbps)
    lacks = {answer.lack for answer in answers}
    needed = [answer.launches for answer in answers if answer.launches is not None]
    launches = max(needed, default=None)
    if ladder.rates_words:
        return NextStep(launches=launches, is_found=True)
    shaped = [rung.rate_gbps for rung in found.rungs if not rung.is_unshaped]
    nics = _num_nics(ladder)
    slower: tuple[float, ...] = ()
    faster: tuple[float, ...] = ()
    if Lack.SLOWER_RATES in lacks:
        slower = tuple(reversed(_between(min(shaped), min(shaped) / SLOWER, 2)))
    wanted = _wanted_gbps(found, max(shaped))
    most = _most_gbps(ladder)
    wanted = wanted if most is None else min(wanted, most)
    if Lack.FASTER_RATES in lacks and wanted > LEAST_GAIN * max(shaped):
        faster = _between(max(shaped), wanted, 3)
    has_unshaped = any(is_unshaped(rung.case) for rung in ladder.rungs)
    return NextStep(
        faster_gbps=tuple(rate / nics for rate in faster),
        slower_gbps=tuple(rate / nics for rate in slower),
        before_gbps=tuple(rate / nics for rate in shaped),
        launches=launches,
        lacks_unshaped=Lack.FASTER_RATES in lacks and not has_unshaped and _may_go_unshaped(ladder),
    )


def _wanted_gbps(found: Sensitivity, fastest: float) -> float:
    """How far up is worth a look, on a host without limit?"""
    enough = _looked_for(found.enough_gbps) if found.enough_gbps.lack else None
    return max(FURTHER * fastest, 0.0 if enough is None else enough * WIDER)


def _looked_for(rate: LadderAnswer) -> float | None:
    """How far up may it lie? None: nothing is known of it."""
    return rate.at_least if rate.at_most is None else rate.at_most


def _most_gbps(ladder: Ladder) -> float | None:
    """The fastest rate of a node that this host could carry twice; None: not measured."""
    ceilings = [s.ceiling_gbps.value for s in ladder.rungs if s.ceiling_gbps is not None]
    return min(ceilings) / CEILING_OVER_RATE * _num_nics(ladder) if ceilings else None


def _num_nics(ladder: Ladder) -> int:
    link = ladder.rungs[0].case.link
    assert link is not None, "rungs have links"
    return link.num_nics


def _may_go_unshaped(ladder: Ladder) -> bool:
    link = ladder.rungs[0].case.link
    return link is not None and not link.needs_netem and not link.slow_pairs


def _between(start_gbps: float, end_gbps: float, number: int) -> tuple[float, ...]:
    """Geometric, from behind `start` to `end`."""
    ratio = (end_gbps / start_gbps) ** (1 / number)
    return tuple(float(f"{start_gbps * ratio**step:.2g}") for step in range(1, number + 1))
