"""How wide is a prediction's 80 % interval, what makes it wide, and what would narrow it?

Intervals are quantiles of measured over predicted in the same regime, of sources that constants
had not seen (fitting/residuals.py). What calibration leaves open, and cases unlike any that was
seen, widen them. All in logarithms.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broadgauge.predict.costs.groups import group_of
from broadgauge.predict.costs.link_rates import headroom_ratio, is_rdma, prior_spread_ratio
from broadgauge.predict.costs.pieces import ComputeCosts
from broadgauge.predict.facts.arrays import ROUNDING_RATIO, Flags, Times
from broadgauge.predict.facts.columns import Columns
from broadgauge.predict.facts.knowledge import Knowledge, path_of
from broadgauge.predict.facts.similar_kernels import left_ratio
from broadgauge.predict.intervals.unfamiliar import Widenings, widenings_of
from broadgauge.predict.prediction import NORMAL_80
from broadgauge.predict.timeline.evaluation import Evaluation

Regimes = npt.NDArray[np.str_]

LARGE_SHARE = 0.2
"""Of a step that waits for something: then that is its regime."""
CLASS_LOG = 0.35
"""Half an interval where no residual says anything: a third either way."""
LEAST_LOG = 0.06
"""Repeated configurations spread by ×1.06 (median): no interval is narrower."""
OUTSIDE_RATIO = 1.5
"""By what an interval is widened for a case unlike those that were seen."""
OFFLOADED_RATIO = 2.5
"""Where the host's memory and CPU take part, which no catalog describes."""
OTHER_SIDE_RATIO = 0.6
"""Of the wider side that the narrower one has at least: few sources, all slower than predicted, do
not say that the next one can't be faster."""
CALIBRATED_RATIO = 0.6
"""By what a measured step of the same system narrows what isn't kernels: residuals of
references/measured-training.csv with up to three rows a system and network, over those without."""
STILL_UNKNOWN_RATIO = 0.85
"""Of what was unknown of a case's kernels: with more left than this it isn't called calibrated."""
SEEN_GENERATIONS = frozenset({"volta", "ampere", "hopper"})
SEEN_FORMS = frozenset({"sxm"})
"""Only one source has boards with PCIe alone: that is not enough to know a class."""
KERNELS = ("compute", "memory")
NETWORKS = frozenset({"network-rdma", "network-sockets"})
LINKS = NETWORKS | {"intra_node", "pipeline"}
"""What waits for links or for other stages misses as they do, never as surely as kernels."""
WORDS = {
    "compute": ("kernel times", "one measured step of this framework on this GPU"),
    "memory": ("memory-bound kernels", "one measured step of this framework on this GPU"),
    "launch": ("launch times of the host", "one measured step of a small micro-batch"),
    "network-rdma": ("the rate between nodes", "the collectives probe between two nodes"),
    "network-sockets": ("the rate of sockets", "the collectives probe on this network"),
    "intra_node": ("the links inside a node", "the collectives probe on one node"),
    "pipeline": ("the slowest pipeline stage", "one measured step with as many stages"),
    "fixed": ("the optimizer and what a step costs once", "one measured step of one node"),
}
"""Regime → the term that is uncertain, and the measurement that narrows it most."""


def regimes_of(columns: Columns, compute: ComputeCosts, evaluation: Evaluation) -> Regimes:
    """What each case's step time rests on. A fabric that isn't stated is what it is priced as."""
    step_s = evaluation.step_s
    once_s = evaluation.optimizer_s + compute.step_fixed_s
    network = np.where(is_rdma(columns) > 0, "network-rdma", "network-sockets")
    names = np.where(compute.memory_bound_ratio > 0.5, "memory", "compute")
    for share_s, name in (
        (once_s, "fixed"),
        (evaluation.bubble_s, "pipeline"),
        (evaluation.launch_s, "launch"),
        (evaluation.exposed_intra_node_s, "intra_node"),
        (evaluation.exposed_network_s, network),
    ):
        names = np.where(share_s > LARGE_SHARE * step_s, name, names)
    return names


def families_of(columns: Columns) -> Regimes:
    """Kinds of trainings whose predictions miss by different amounts.

    Before Ampere there was no flash attention, bfloat16 or NVSwitch in most nodes; adapters bring
    kernels of their own on frozen weights.
    """
    old = {"pascal", "volta", "turing"}
    is_older = np.array([gpu.generation in old for gpu in columns.gpus])[columns.gpu_index]
    families = np.where(columns.is_lora, "adapters", "plain")
    return np.where(is_older, "older", families)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """80 % intervals of many cases."""

    low_s: Times
    high_s: Times
    regimes: Regimes
    is_calibrated: Flags
    is_outside: Flags
    kernels_below_log: Times
    kernels_above_log: Times
    """What kernels alone make of it, of which the widening for a kind is a multiple."""
    widenings: Widenings
    """For what few have measured."""


def intervals(
    columns: Columns, compute: ComputeCosts, evaluation: Evaluation, knowledge: Knowledge
) -> Intervals:
    """Around each predicted step; the point is always inside, and no end is faster than the bytes
    between nodes at the NICs' nominal rate."""
    regimes = regimes_of(columns, compute, evaluation)
    left = np.where(np.isin(regimes, KERNELS), left_ratio(columns.cases, knowledge.misses), np.nan)
    is_calibrated = _is_calibrated(columns, knowledge, evaluation) & ~(left > STILL_UNKNOWN_RATIO)
    is_outside = _is_outside(columns)
    families = families_of(columns)
    below, above = _sides(regimes, families, knowledge.residuals)
    posterior = _posterior_log_sd(columns, knowledge, evaluation) * NORMAL_80
    ratio = np.where(is_outside, OUTSIDE_RATIO, 1.0)
    ratio = np.where(columns.is_offloaded, OFFLOADED_RATIO, ratio)
    faster, slower = _prior_rate_logs(columns, knowledge, evaluation)
    unfamiliar = widenings_of(columns, knowledge)
    share = ratio * (1 - evaluation.exposed_network_s / evaluation.step_s)
    of_kernels = _sides(np.full(len(columns), "compute"), families, knowledge.residuals)
    kernels = [each * share for each in of_kernels]

    def side(residual: Times, rate: Times, kernel: Times) -> Times:
        usual, added = np.hypot(residual, posterior) * ratio, unfamiliar.added(kernel)
        usual = np.where(unfamiliar.is_measured, np.hypot(usual, added), usual)
        known = np.where(is_calibrated, _narrowed(usual, left), usual)
        known = np.where(unfamiliar.is_measured, known, np.hypot(known, added))
        return np.hypot(known, rate)

    low_s = evaluation.step_s * np.exp(-side(below, faster, kernels[0]))
    return Intervals(
        low_s=np.maximum(low_s, _at_nominal_s(columns, evaluation)),
        high_s=evaluation.step_s * np.exp(side(above, slower, kernels[1])),
        regimes=regimes,
        is_calibrated=is_calibrated,
        is_outside=is_outside,
        kernels_below_log=kernels[0],
        kernels_above_log=kernels[1],
        widenings=unfamiliar,
    )


def _at_nominal_s(columns: Columns, evaluation: Evaluation) -> Times:
    """How long do a node's bytes take at its NICs' nominal rate?

    0 where none is stated, and where that is more than the step's links are busy: then the bytes
    are another pipeline stage's, or a measured rate is above the stated one.
    """
    wire_s = evaluation.network_bytes / (columns.fabric.node_gbps * 1e9 / 8)
    is_held = wire_s <= evaluation.inter_busy_s * (1 + ROUNDING_RATIO)
    return np.where(is_held, np.minimum(wire_s, evaluation.step_s), 0.0)


def _sides(
    regimes: Regimes, families: Regimes, known: Mapping[str, tuple[float, float]]
) -> tuple[Times, Times]:
    """Half an interval each, downwards and upwards; neither much narrower than the other."""
    low, high = _residuals(regimes, families, known)
    least = OTHER_SIDE_RATIO * np.maximum(np.maximum(-low, high), LEAST_LOG)
    return np.maximum(-low, least), np.maximum(high, least)


def _narrowed(usual: Times, left: Times) -> Times:
    """Half an interval after a measurement: of kernels by how like the measured ones they are, and
    no narrower than repeats of one configuration spread."""
    of_kernels = np.minimum(usual, np.hypot(left * usual, NORMAL_80 * LEAST_LOG))
    return np.where(np.isnan(left), CALIBRATED_RATIO * usual, of_kernels)


def kernels_log_sd(columns: Columns, knowledge: Knowledge) -> Times:
    """Of kernel times of systems like each case's, before anything of its system is measured."""
    regimes = np.full(len(columns), "compute")
    low, high = _residuals(regimes, families_of(columns), knowledge.residuals)
    ratio = np.where(_is_unseen(columns), OUTSIDE_RATIO, 1.0)
    ratio = ratio * widenings_of(columns, knowledge).width_ratio
    return ratio * (high - low) / (2 * NORMAL_80)


def _residuals(
    regimes: Regimes, families: Regimes, known: Mapping[str, tuple[float, float]]
) -> tuple[Times, Times]:
    """Logarithms to the lower and the upper end, of the narrowest class that has residuals.

    What waits for a network misses as networks do, whatever is trained; the rest as its family.
    Residuals of kernels say nothing of links: without their own it is no narrower than the prior.
    """
    low, high = np.full(len(regimes), -CLASS_LOG), np.full(len(regimes), CLASS_LOG)
    for name in WORDS:
        for family in np.unique(families).tolist():
            wider = (name, family) if name in NETWORKS else (family, name)
            classes = (f"{name}-{family}", *wider, "all")
            found = next((known[each] for each in classes if each in known), None)
            if found is None:
                continue
            if name in LINKS and not {f"{name}-{family}", name} & known.keys():
                found = min(found[0], -CLASS_LOG), max(found[1], CLASS_LOG)
            mask = (regimes == name) & (families == family)
            low[mask], high[mask] = found
    return low, high


def _is_calibrated(columns: Columns, knowledge: Knowledge, evaluation: Evaluation) -> Flags:
    """Is every term that decides the step identified by a measurement?"""
    if not knowledge.factors:
        return np.zeros(len(columns), dtype=np.bool_)
    known = {key for key, factor in knowledge.factors.items() if factor.is_identified}
    system = [
        [
            ("compute", gpu.name, each.name) in known or ("launch", gpu.name, each.name) in known
            for each in columns.frameworks
        ]
        for gpu in columns.gpus
    ]
    is_system = np.array(system)[columns.gpu_index, columns.framework_index]
    is_waiting = evaluation.exposed_network_s > LARGE_SHARE * evaluation.step_s
    has_path = np.array([("node_rate", *path_of(case)) in known for case in columns.cases])
    result: Flags = is_system & (~is_waiting | has_path)
    return result


def _is_outside(columns: Columns) -> Flags:
    """Unlike the rows that residuals are of: GPU generation, framework, or work on the host."""
    return np.asarray(_is_unseen(columns) | columns.is_offloaded)


def _is_unseen(columns: Columns) -> Flags:
    """No residual is of such a GPU or framework."""
    seen = np.array(
        [gpu.generation in SEEN_GENERATIONS and gpu.form in SEEN_FORMS for gpu in columns.gpus]
    )
    known = np.array([framework.name != "unknown" for framework in columns.frameworks])
    return np.asarray(~seen[columns.gpu_index] | ~known[columns.framework_index])


def _prior_rate_logs(
    columns: Columns, knowledge: Knowledge, evaluation: Evaluation
) -> tuple[Times, Times]:
    """How much faster and slower is the step, if a network nobody measured is at its prior's ends?

    What is hidden now comes out where the network alone takes longer than the step.
    """
    ratio = prior_spread_ratio(columns)
    if knowledge.factors:
        known = {key for key, factor in knowledge.factors.items() if factor.is_identified}
        found = [("node_rate", *path_of(case)) in known for case in columns.cases]
        ratio = np.where(found, 1.0, ratio)
    step_s, exposed_s = evaluation.step_s, evaluation.exposed_network_s
    headroom = headroom_ratio(group_of("data", columns), columns)
    fast_s = step_s - exposed_s * (1 - 1 / np.minimum(ratio, headroom))
    slow_s = np.maximum(step_s + exposed_s * (ratio - 1), evaluation.inter_busy_s * ratio)
    return np.log(step_s / fast_s), np.log(np.maximum(slow_s, step_s) / step_s)


def _posterior_log_sd(columns: Columns, knowledge: Knowledge, evaluation: Evaluation) -> Times:
    """Of the step, from what calibration left open of the network's rate."""
    if not knowledge.factors:
        return np.zeros(len(columns))
    share = evaluation.exposed_network_s / evaluation.step_s
    spread = [
        factor.log_sd
        if (factor := knowledge.factors.get(("node_rate", *path_of(case)))) is not None
        else 0.0
        for case in columns.cases
    ]
    return np.asarray(share * np.array(spread))
