"""Ladders whose truth is known, with the scatter that launches have.

`python tests/predict/sensitivity/simulated_ladders.py` prints the table of docs/sensitivity.md.
"""

import sys
from dataclasses import dataclass

import numpy as np

from broadgauge.predict.sensitivity.ladder import Answer, Rung
from broadgauge.predict.sensitivity.sensitivity import analyse

RATES_GBPS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
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
) -> list[Rung]:
    """Six rates; each launch scatters by itself, and each block as a whole."""
    chance = np.random.default_rng([seed, len(name)])
    blocks = chance.normal(0, block_spread, num_blocks)
    return [
        Rung(
            rate_gbps=rate,
            payload_gbps=rate * PAYLOAD_RATIO,
            step_s_by_block={
                block: TRUTHS[name].step_s(rate)
                * float(np.exp(blocks[block] + chance.normal(0, spread)))
                for block in range(num_blocks)
            },
        )
        for rate in RATES_GBPS
    ]


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
        answers: dict[str, Answer] = {"base": found.base_s, "bytes": found.critical_bytes}
        for key, answer in answers.items():
            estimate = answer.estimate
            if estimate is None or estimate.low is None or estimate.high is None:
                continue
            held[key] += estimate.low <= wanted[key] <= estimate.high
            off[key].append(abs(estimate.value / wanted[key] - 1) if wanted[key] else 0.0)
    return Rates(
        held={key: number / num_ladders for key, number in held.items()},
        off_p90={k: float(np.percentile(v, 90)) if v else 0.0 for k, v in off.items()},
        right_form=forms / num_ladders,
    )


def main(num_ladders: int = 200) -> None:
    """The table, in percent."""
    print("| truth | launches | form found | base: held, off | bytes: held, off |")  # noqa: T201
    print("| --- | --- | --- | --- | --- |")  # noqa: T201
    for name in ("line", "hinge", "two slopes"):
        for num_blocks in (3, 5, 10):
            found = rates(name, num_ladders, num_blocks)
            cells = [f"{found.right_form:.0%}"]
            cells += [f"{found.held[key]:.1%}, {found.off_p90[key]:.1%}" for key in found.held]
            print(f"| {name} | {num_blocks} | {' | '.join(cells)} |")  # noqa: T201


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
