"""Simulated trials whose truth is known, and the ways of comparing them that were weighed.

`python tests/results/simulated.py` prints the table of docs/decisions/0002-paired-comparison.md.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from broadgauge.results.statistics import LaunchPair

Floats = NDArray[np.float64]
Order = Literal["alternating", "rotated", "random", "random of two"]

LAUNCH_SPREAD_RATIO = 0.02
STEP_SPREAD_RATIO = 0.05
NUM_STEPS = 16
SLOT_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """How do the trials of a run scatter?"""

    name: str
    order: Order = "alternating"
    step_correlation: float = 0.0
    drift_of_spread: float = 0.0
    """Growth over the whole run, linear in time, in standard deviations of launches."""
    is_walk: bool = False
    """The machine also wanders: a random walk from slot to slot, half a launch's spread a step."""
    slow_share: float = 0.0
    """Share of launches that are 8 % slower: two modes, 8 standard deviations of one mode apart."""


SCENARIOS = (
    Scenario(name="white"),
    Scenario(name="correlated 0.5", step_correlation=0.5),
    Scenario(name="correlated 0.9", step_correlation=0.9),
    Scenario(name="drift 1, alternating", drift_of_spread=1),
    Scenario(name="drift 3, alternating", drift_of_spread=3, step_correlation=0.9),
    Scenario(name="drift 10, alternating", drift_of_spread=10),
    Scenario(name="drift 30, alternating", drift_of_spread=30),
    Scenario(name="drift 3, rotated", drift_of_spread=3, order="rotated"),
    Scenario(name="drift 10, rotated", drift_of_spread=-10, order="rotated"),
    Scenario(name="drift 3, random", drift_of_spread=3, order="random"),
    Scenario(name="drift 10, random", drift_of_spread=10, order="random"),
    Scenario(name="drift 10, random of two", drift_of_spread=10, order="random of two"),
    Scenario(name="random walk, rotated", is_walk=True, order="rotated"),
)
BIMODAL = (
    Scenario(name="bimodal 1 in 2", slow_share=0.5),
    Scenario(name="bimodal 1 in 3, drift 3", slow_share=1 / 3, drift_of_spread=3),
    Scenario(name="bimodal 1 in 5, rotated", slow_share=0.2, order="rotated"),
)


def simulated_slots(order: Order, launches: int, shape: int, rng: np.random.Generator) -> Floats:
    """In which slots of the schedule do A and B run? `float[2, shape, launches]`."""
    size = 2 if order in ("alternating", "random of two") else 3
    blocks = np.arange(launches)
    if order == "alternating":  # A B, B A, …
        within = np.stack([blocks % 2, 1 - blocks % 2])
    elif order == "rotated":  # A B C, B C A, C A B, …
        within = np.stack([-blocks % 3, (1 - blocks) % 3])
    else:
        places = rng.permuted(np.tile(np.arange(size), (shape, launches, 1)), axis=2)
        return np.moveaxis(places[:, :, :2], 2, 0) + blocks * float(size)
    return np.repeat((within + blocks * float(size))[:, None, :], shape, axis=1)


def simulated_steps(
    scenario: Scenario, slots: Floats, true_ratio: float, rng: np.random.Generator
) -> Floats:
    """What are the steps' times? `float[2, repetitions, launches, steps]`, those of A and of B."""
    num_slots = int(slots.max()) + 1
    steps = np.empty((*slots.shape, NUM_STEPS))
    rho = scenario.step_correlation
    steps[..., 0] = rng.standard_normal(slots.shape)
    for step in range(1, NUM_STEPS):
        fresh = np.sqrt(1 - rho**2) * rng.standard_normal(slots.shape)
        steps[..., step] = rho * steps[..., step - 1] + fresh
    is_bimodal = scenario.slow_share > 0
    mode_spread = 0.5 if is_bimodal else 1.0
    logs = LAUNCH_SPREAD_RATIO * mode_spread * rng.standard_normal(slots.shape)
    logs += 0.08 * (rng.random(slots.shape) < scenario.slow_share)
    if scenario.is_walk:
        walk = rng.standard_normal((slots.shape[1], num_slots)).cumsum(axis=1)
        taken = [np.take_along_axis(walk, side.astype(int), axis=1) for side in slots]
        logs += LAUNCH_SPREAD_RATIO / 2 * np.stack(taken)
    drift = 1 + scenario.drift_of_spread * LAUNCH_SPREAD_RATIO * slots / num_slots
    level = np.exp(logs) * drift * np.array([1.0, true_ratio])[:, None, None]
    return level[..., None] * (1 + STEP_SPREAD_RATIO * steps)


def simulated_runs(
    scenario: Scenario, *, launches: int, repetitions: int, true_ratio: float, seed: int
) -> Iterator[list[LaunchPair]]:
    """What would each of so many repetitions of one experiment measure?"""
    rng = np.random.default_rng([seed, launches, *scenario.name.encode()])
    slots = simulated_slots(scenario.order, launches, repetitions, rng)
    a_runs, b_runs = simulated_steps(scenario, slots, true_ratio, rng)
    middles = (slots + 0.5) * SLOT_S
    for run in range(repetitions):
        columns = (part[run].tolist() for part in (a_runs, b_runs, *middles))
        yield [
            LaunchPair(a_values=a, b_values=b, a_middle_s=a_s, b_middle_s=b_s)
            for a, b, a_s, b_s in zip(*columns, strict=True)
        ]


def plain(log_ratios: Floats, distances: Floats) -> tuple[Floats, Floats]:
    """Mean and half width by the paired t interval, drift ignored. Rows are repetitions."""
    launches = log_ratios.shape[1]
    error = log_ratios.std(axis=1, ddof=1) / np.sqrt(launches)
    return log_ratios.mean(axis=1), stats.t.ppf(0.975, launches - 1) * error


def adjusted(log_ratios: Floats, distances: Floats) -> tuple[Floats, Floats]:
    """Intercept of a line over the distance B − A; plain where the order never changed."""
    return _adjusted_where(np.full(len(log_ratios), fill_value=True), log_ratios, distances)


def pretested(log_ratios: Floats, distances: Floats) -> tuple[Floats, Floats]:
    """Adjusted where the slope is significant at 5 %, else plain."""
    launches = log_ratios.shape[1]
    x = distances - distances.mean(axis=1, keepdims=True)
    spread = np.maximum((x**2).sum(axis=1), 1e-9)
    slope = (x * log_ratios).sum(axis=1) / spread
    y = log_ratios - log_ratios.mean(axis=1, keepdims=True) - slope[:, None] * x
    error = np.sqrt((y**2).sum(axis=1) / (launches - 2) / spread)
    return _adjusted_where(
        abs(slope) > stats.t.ppf(0.975, launches - 2) * error, log_ratios, distances
    )


def shorter(log_ratios: Floats, distances: Floats) -> tuple[Floats, Floats]:
    """Whichever of plain and adjusted has the shorter interval."""
    _, plain_half = plain(log_ratios, distances)
    _, adjusted_half = adjusted(log_ratios, distances)
    return _adjusted_where(adjusted_half < plain_half, log_ratios, distances)


def _adjusted_where(
    wanted: NDArray[np.bool_], log_ratios: Floats, distances: Floats
) -> tuple[Floats, Floats]:
    launches = log_ratios.shape[1]
    value, half = plain(log_ratios, distances)
    for run in np.flatnonzero(wanted & (distances.min(axis=1) < 0) & (distances.max(axis=1) > 0)):
        design = np.column_stack([np.ones(launches), distances[run]])
        solution, squares, *_ = np.linalg.lstsq(design, log_ratios[run], rcond=None)
        covariance = np.linalg.inv(design.T @ design) * squares[0] / (launches - 2)
        value[run] = solution[0]
        half[run] = stats.t.ppf(0.975, launches - 2) * np.sqrt(covariance[0, 0])
    return value, half


OPTIONS: tuple[Callable[[Floats, Floats], tuple[Floats, Floats]], ...] = (
    plain,
    adjusted,
    pretested,
    shorter,
)


def print_table(repetitions: int) -> None:
    """What does each option cover, and what is its median half width? Both in percent."""
    names = " | ".join(option.__name__ for option in OPTIONS)
    sys.stdout.write(f"| scenario | launches | {names} |\n|{' --- |' * (len(OPTIONS) + 2)}\n")
    for scenario in (*SCENARIOS, *BIMODAL):
        for launches in (3, 4, 5, 10, 20):
            rng = np.random.default_rng([7, launches, *scenario.name.encode()])
            slots = simulated_slots(scenario.order, launches, repetitions, rng)
            a, b = np.log(simulated_steps(scenario, slots, 1.0, rng).mean(axis=3))
            results = [option(b - a, slots[1] - slots[0]) for option in OPTIONS]
            cells = " | ".join(
                f"{100 * np.mean(abs(value) <= half):.1f} / {100 * np.median(half):.2f}"
                for value, half in results
            )
            sys.stdout.write(f"| {scenario.name} | {launches} | {cells} |\n")


if __name__ == "__main__":
    print_table(repetitions=20_000)  # five minutes
