"""Ladders whose truth is known, with the scatter that launches have."""

from dataclasses import dataclass

import numpy as np

from broadgauge.predict.ladder import Rung

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
