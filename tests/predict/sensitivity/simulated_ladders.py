"""Ladders whose truth is known, with the scatter that launches have.

`python tests/predict/sensitivity/simulated_ladders.py` prints the tables of docs/sensitivity.md.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from broadgauge.predict.sensitivity.ladder import (
    RATE_ERROR_RATIO,
    LadderAnswer,
    Rung,
    Sensitivity,
)
from broadgauge.predict.sensitivity.sensitivity import GAIN_RATIO, analyse

RATES_GBPS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
UNSHAPED_GBPS = 20.0
"""What a host carries over its unshaped links."""
PAYLOAD_RATIO = 0.957
COMPUTE_S = 0.03
NUM_BLOCKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The larger of two sums of compute and bytes."""

    fast_bytes: float
    late_s: float
    """Compute that stays in front of the bytes at slow rates."""
    slow_bytes: float

    def step_s(self, rate_gbps: float) -> float:
        byte_s = 8e-9 / (rate_gbps * PAYLOAD_RATIO)
        early = COMPUTE_S + self.fast_bytes * byte_s
        return max(early, self.late_s + self.slow_bytes * byte_s)

    @property
    def knee_gbps(self) -> float | None:
        """None: one slope."""
        if self.late_s >= COMPUTE_S or self.slow_bytes <= self.fast_bytes:
            return None
        byte_s = (COMPUTE_S - self.late_s) / (self.slow_bytes - self.fast_bytes)
        return 8e-9 / byte_s / PAYLOAD_RATIO

    @property
    def enough_gbps(self) -> float:
        """Where a step is longer than its compute by GAIN_RATIO; 0: nowhere."""
        wanted_s = (1 + GAIN_RATIO) * COMPUTE_S
        pieces = ((self.fast_bytes, COMPUTE_S), (self.slow_bytes, self.late_s))
        byte_s = [(wanted_s - level_s) / each for each, level_s in pieces if each > 0]
        return 8e-9 / min(byte_s) / PAYLOAD_RATIO if byte_s else 0.0


TRUTHS = {
    "flat": Truth(fast_bytes=0, late_s=0, slow_bytes=0),
    "line": Truth(fast_bytes=1e6, late_s=COMPUTE_S, slow_bytes=1e6),
    "hinge": Truth(fast_bytes=0, late_s=0.002, slow_bytes=1e6),
    "two slopes": Truth(fast_bytes=2e5, late_s=0.01, slow_bytes=1e6),
}


def simulated(
    name: str,
    *,
    seed: int,
    num_blocks: int = NUM_BLOCKS,
    spread: float = 0.01,
    block_spread: float = 0.02,
    has_unshaped: bool = False,
) -> list[Rung]:
    """Six rates; each launch scatters by itself, and each block as a whole."""
    chance = np.random.default_rng([seed, len(name)])
    blocks = chance.normal(0, block_spread, num_blocks)
    return rungs_of(TRUTHS[name], chance, blocks, spread, has_unshaped=has_unshaped)


def rungs_of(
    truth: Truth,
    chance: np.random.Generator,
    blocks: np.ndarray,
    spread: float,
    *,
    has_unshaped: bool,
) -> list[Rung]:
    """Every rate in every block."""
    rates = (*RATES_GBPS, UNSHAPED_GBPS) if has_unshaped else RATES_GBPS
    return [
        Rung(
            rate_gbps=rate,
            payload_gbps=rate * PAYLOAD_RATIO,
            step_s_by_block={
                block: truth.step_s(rate) * float(np.exp(effect + chance.normal(0, spread)))
                for block, effect in enumerate(blocks.tolist())
            },
            is_unshaped=rate == UNSHAPED_GBPS,
        )
        for rate in rates
    ]


def random_truth(chance: np.random.Generator, num_beyond: int) -> Truth:
    """A line (0), or a hinge with so many rungs beyond its knee, anywhere between two rungs.

    A line's bytes take as long as its compute at a rate of the ladder's middle.
    """
    rates = RATES_GBPS[::-1]
    if not num_beyond:
        middle = RATES_GBPS[0] * (RATES_GBPS[-1] / RATES_GBPS[0]) ** chance.uniform(0.3, 0.7)
        num_bytes = COMPUTE_S * middle * PAYLOAD_RATIO / 8e-9
        return Truth(fast_bytes=num_bytes, late_s=COMPUTE_S, slow_bytes=num_bytes)
    fast, slow = rates[num_beyond - 1], rates[num_beyond]
    knee = fast * (slow / fast) ** chance.uniform(0, 1)
    late_s = COMPUTE_S * chance.uniform(0, 0.6)
    num_bytes = (COMPUTE_S - late_s) * knee * PAYLOAD_RATIO / 8e-9
    return Truth(fast_bytes=0, late_s=late_s, slow_bytes=num_bytes)


FOUND = {3: (0, 2, 4), 4: (0, 2, 4, 5)}
"""Which of the rates so many networks that were found carry."""


def on_found_networks(
    seed: int, *, num_beyond: int, num_networks: int, rate_spread: float, is_told: bool = True
) -> tuple[Truth, list[Rung]]:
    """Networks with measured rates, each off by so much. Not `is_told`: as if they were set."""
    chance = np.random.default_rng([seed, num_beyond, num_networks])
    truth = random_truth(chance, num_beyond)
    rungs = rungs_of(truth, chance, chance.normal(0, 0.02, NUM_BLOCKS), 0.01, has_unshaped=False)
    found = []
    for place in FOUND[num_networks]:
        measured = rungs[place].payload_gbps * float(np.exp(chance.normal(0, rate_spread)))
        error = rate_spread if is_told else RATE_ERROR_RATIO
        found.append(
            replace(rungs[place], rate_gbps=measured, payload_gbps=measured, rate_error_ratio=error)
        )
    return truth, found


def bytes_held(
    num_ladders: int,
    *,
    num_beyond: int,
    num_networks: int,
    rate_spread: float,
    is_told: bool = True,
) -> tuple[float, float]:
    """Which share of the bytes' intervals holds them, and how wide is half of one, as a share?"""
    held, widths = [], []
    for seed in range(num_ladders):
        truth, rungs = on_found_networks(
            seed,
            num_beyond=num_beyond,
            num_networks=num_networks,
            rate_spread=rate_spread,
            is_told=is_told,
        )
        found = analyse(rungs).critical_bytes.estimate
        if found is not None and found.low is not None and found.high is not None:
            held.append(found.low <= truth.slow_bytes <= found.high)
            widths.append((found.high - found.low) / 2 / found.value)
    return float(np.mean(held)), float(np.median(widths))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one ladder says of a figure, beside the truth."""

    truth: float | None
    """None: there is no such figure."""
    answer: LadderAnswer

    @property
    def is_stated(self) -> bool:
        return self.answer.estimate is not None

    @property
    def is_held(self) -> bool:
        """Stated, with a truth that lies in its interval."""
        estimate = self.answer.estimate
        if estimate is None or self.truth is None:
            return False
        assert estimate.low is not None, "what is stated has an interval"
        assert estimate.high is not None, "what is stated has an interval"
        return estimate.low <= self.truth <= estimate.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One simulated ladder and all that it says."""

    found: Sensitivity
    floor: Claim
    knee: Claim
    enough: Claim

    @property
    def claims(self) -> tuple[Claim, ...]:
        return self.floor, self.knee, self.enough

    def num_beyond(self, claim: Claim) -> int:
        """Rungs that are faster than a rate that is stated."""
        estimate = claim.answer.estimate
        assert estimate is not None, "it is stated"
        return sum(rung.rate_gbps >= estimate.value for rung in self.found.rungs)


def seen(
    num_ladders: int,
    *,
    num_beyond: int,
    spread: float,
    num_blocks: int = NUM_BLOCKS,
    has_unshaped: bool = False,
) -> Iterator[Seen]:
    """So many ladders, each of another truth."""
    for seed in range(num_ladders):
        chance = np.random.default_rng([seed, num_beyond, round(spread * 1000), num_blocks])
        truth = random_truth(chance, num_beyond)
        blocks = chance.normal(0, 0.02, num_blocks)
        found = analyse(rungs_of(truth, chance, blocks, spread, has_unshaped=has_unshaped))
        yield Seen(
            found=found,
            floor=Claim(truth=COMPUTE_S, answer=found.base_s),
            knee=Claim(truth=truth.knee_gbps, answer=found.knee_gbps),
            enough=Claim(truth=truth.enough_gbps, answer=found.enough_gbps),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How often is each answer right, and how far off?"""

    held: dict[str, float]
    off_p90: dict[str, float]
    right_form: float


def rates(name: str, num_ladders: int, num_blocks: int) -> Rates:
    """Over so many ladders: shares whose interval holds the truth, errors' 90th percentile."""
    truth = TRUTHS[name]
    wanted = {"base": COMPUTE_S, "bytes": truth.slow_bytes}
    held = dict.fromkeys(wanted, 0)
    off: dict[str, list[float]] = {key: [] for key in wanted}
    forms = 0
    for seed in range(num_ladders):
        found = analyse(simulated(name, seed=seed, num_blocks=num_blocks))
        forms += found.curve.form == name
        estimates = {"base": found.curve_base_s, "bytes": found.critical_bytes.estimate}
        for key, estimate in estimates.items():
            if estimate is None or estimate.low is None or estimate.high is None:
                continue
            held[key] += estimate.low <= wanted[key] <= estimate.high
            off[key].append(abs(estimate.value / wanted[key] - 1) if wanted[key] else 0.0)
    return Rates(
        held={key: number / num_ladders for key, number in held.items()},
        off_p90={k: float(np.percentile(v, 90)) if v else 0.0 for k, v in off.items()},
        right_form=forms / num_ladders,
    )


def print_claims(num_ladders: int) -> None:
    """How often are floor, knee and the rate that is enough stated, and how often held?"""
    print("| truth | unshaped | scatter | floor | knee | enough |")  # noqa: T201
    print("| --- | --- | --- | --- | --- | --- |")  # noqa: T201
    for num_beyond, name in enumerate(("line", "hinge, 1", "hinge, 2", "hinge, 3")):
        for has_unshaped in (False, True):
            for spread in (0.01, 0.05, 0.2):
                ladders = list(
                    seen(
                        num_ladders,
                        num_beyond=num_beyond,
                        spread=spread,
                        has_unshaped=has_unshaped,
                    )
                )
                cells = [
                    _claimed([getattr(each, key) for each in ladders])
                    for key in ("floor", "knee", "enough")
                ]
                has = "yes" if has_unshaped else "no"
                print(f"| {name} | {has} | {spread:.0%} | {' | '.join(cells)} |")  # noqa: T201


def _claimed(claims: list[Claim]) -> str:
    stated = [claim for claim in claims if claim.is_stated]
    if not stated:
        return "0 %"
    held = sum(claim.is_held for claim in stated) / len(stated)
    if len(stated) < 0.01 * len(claims):
        return f"{len(stated)} of {len(claims)}, {sum(claim.is_held for claim in stated)} held"
    return f"{len(stated) / len(claims):.0%}, {held:.0%}".replace("%", " %")


def print_found(num_ladders: int) -> None:
    """Networks that were found: how often do the bytes lie in their interval?"""
    print("| networks | truth | rates off by | held, half width | as if they were set |")  # noqa: T201
    print("| --- | --- | --- | --- | --- |")  # noqa: T201
    for num_networks, places in FOUND.items():
        for num_beyond in range(3):
            found_beyond = sum(RATES_GBPS[place] >= RATES_GBPS[-num_beyond] for place in places)
            name = f"hinge, {found_beyond}" if num_beyond else "line"
            for spread in (0.01, 0.05):
                cells = [
                    "{:.0%}, {:.0%}".format(
                        *bytes_held(
                            num_ladders,
                            num_beyond=num_beyond,
                            num_networks=num_networks,
                            rate_spread=spread,
                            is_told=is_told,
                        )
                    )
                    for is_told in (True, False)
                ]
                print(f"| {num_networks} | {name} | {spread:.0%} | {' | '.join(cells)} |")  # noqa: T201


def main(num_ladders: int = 200) -> None:
    """The tables, in percent."""
    print("| truth | launches | form found | base: held, off | bytes: held, off |")  # noqa: T201
    print("| --- | --- | --- | --- | --- |")  # noqa: T201
    for name in ("line", "hinge", "two slopes"):
        for num_blocks in (3, 5, 10):
            found = rates(name, num_ladders, num_blocks)
            cells = [f"{found.right_form:.0%}"]
            cells += [f"{found.held[key]:.1%}, {found.off_p90[key]:.1%}" for key in found.held]
            print(f"| {name} | {num_blocks} | {' | '.join(cells)} |")  # noqa: T201
    print_claims(num_ladders)
    print_found(num_ladders)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
