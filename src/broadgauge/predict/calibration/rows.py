"""Which rows of a table calibrate, and which are left to be scored? Chosen without any step time.

A system is one source's GPU, framework and arithmetic; `system-network` takes rows of each of its
networks. Rows are chosen as experiments are designed: each time the one after which the predictions
of all rows of its group would be least uncertain, by how the model says that their times change
with what is calibrated, and by how far what a row says of its kernels reaches (similar_kernels.py)
(V-optimal design, one row after the other; Pukelsheim 2006, chapter 9).
What was measured, and so every error, plays no part.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from broadgauge.predict.calibration.factors import (
    FREEDOM,
    SCALE,
    factor_keys,
    kernel_slopes,
    keys_of,
    prior_log_sd,
)
from broadgauge.predict.calibration.slopes import Slopes
from broadgauge.predict.case import TrainingCase
from broadgauge.predict.facts.knowledge import Knowledge
from broadgauge.predict.facts.similar_kernels import covariances, same_kernels
from broadgauge.predict.tables.table import StepRow

Matrix = npt.NDArray[np.float64]
OWN_VARIANCE = SCALE**2 * (FREEDOM / (FREEDOM - 2) - 1)
"""Of what a configuration has of its own: of the variance of a Student-t with this freedom, what is
beyond its scale, as `estimate` takes it. So a configuration that many rows have is worth more."""
Calibrate = Literal["none", "system", "system-network"]
SystemKey = tuple[str, ...]
DEFAULT_POINTS = 3


def system_of(row: StepRow) -> SystemKey:
    """What shares constants: one source's GPU with one framework and arithmetic."""
    case = row.case
    return (row.source, case.gpu, case.framework, case.precision)


def network_of(row: StepRow) -> SystemKey:
    """What the nodes of a row are joined by."""
    fabric = row.case.fabric
    return (fabric.transport, str(fabric.node_gbps), str(fabric.measured_node_gbyte_per_s))


def calibration_rows(
    rows: Sequence[StepRow], calibrate: Calibrate, num_points: int, knowledge: Knowledge
) -> dict[SystemKey, list[StepRow]]:
    """For each system the rows that calibrate it: never more than half of any group."""
    if calibrate == "none":
        return {}
    systems: dict[SystemKey, list[StepRow]] = {}
    for row in rows:
        systems.setdefault(system_of(row), []).append(row)
    chosen = {}
    for system, mine in systems.items():
        networks: dict[SystemKey, list[int]] = {}
        for index, row in enumerate(mine):
            key = network_of(row) if calibrate == "system-network" else ()
            networks.setdefault(key, []).append(index)
        known = knowledge.without(mine[0].source)
        found = _designed([row.case for row in mine], list(networks.values()), num_points, known)
        chosen[system] = [mine[index] for index in found]
    return chosen


def _designed(
    cases: Sequence[TrainingCase],
    groups: Sequence[Sequence[int]],
    num_points: int,
    knowledge: Knowledge,
) -> list[int]:
    """Which cases are measured? So many of each group, one group after the other."""
    if max(map(len, groups)) < 2:
        return []
    keys = keys_of(cases)
    _, slopes = Slopes(cases, keys, [factor_keys(case) for case in cases], knowledge).at(
        np.zeros(len(keys))
    )
    of_kernels = kernel_slopes(slopes, keys)
    alike = covariances(cases, cases) + OWN_VARIANCE * same_kernels(cases)
    unknown = alike * np.outer(of_kernels, of_kernels)
    unknown = (
        unknown + (slopes * [prior_log_sd(key, cases, knowledge) ** 2 for key in keys]) @ slopes.T
    )
    settings = [replace(case, name="") for case in cases]
    chosen: list[int] = []
    for group in groups:
        for _ in range(min(num_points, len(group) // 2)):
            measured = {settings[index] for index in chosen}
            rest = [index for index in group if index not in chosen]
            new = [index for index in rest if settings[index] not in measured] or rest
            best = min(new, key=lambda i: (-_gain(i, unknown, group), i))
            told = unknown[:, best]
            unknown = unknown - np.outer(told, told) / (told[best] + SCALE**2)
            chosen.append(best)
    return chosen


def _gain(index: int, unknown: Matrix, group: Sequence[int]) -> float:
    """By what the mean variance of the group's predictions falls when this case is measured too.

    Source: Rasmussen and Williams 2006, equation 2.24, for one more observation.
    """
    told = unknown[group, index]
    gained = float(np.mean(told**2)) / (float(unknown[index, index]) + SCALE**2)
    return round(gained, 12)  # sums in another order must not decide
