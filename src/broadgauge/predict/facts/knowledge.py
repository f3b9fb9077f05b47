"""What does the predictor know beside data sheets? Constants, and calibrated factors."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from broadgauge.catalog.constants import known_constants
from broadgauge.catalog.entries import plain
from broadgauge.catalog.fits import Fit, known_fits
from broadgauge.catalog.frameworks import STYLES
from broadgauge.catalog.gpus import Gpu
from broadgauge.catalog.widenings import widening_ratios
from broadgauge.predict.case import RDMA_TRANSPORTS, Fabric, TrainingCase
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.similar_kernels import Miss
from broadgauge.specs.errors import InputError

if TYPE_CHECKING:
    from broadgauge.predict.facts.columns import Columns

FactorKey = tuple[str, ...]
"""What is calibrated, and for what: `("compute", gpu, framework)`."""
CATALOG_RDMA_RATIO = 0.8
"""What costs/network.py takes of nominal with RDMA; a fitted `rdma_ratio` replaces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """By what calibration multiplies a term: 1 without any."""

    value_ratio: float
    log_sd: float
    """What is still not known of its logarithm."""
    is_identified: bool
    """False: no row was decided by this term, so that it is still the prior's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """Immutable, so that a prediction can be repeated."""

    values: Mapping[str, float] = field(default_factory=dict)
    """Constants by name: `gemm_efficiency.ampere`."""
    factors: Mapping[FactorKey, Factor] = field(default_factory=dict)
    """By what the user's own measurements multiply."""
    misses: tuple[Miss, ...] = ()
    """What they say beyond that of kernels like theirs."""
    residuals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Regime → logarithms of measured over predicted, 10 % and 90 % quantiles."""
    widenings: Mapping[str, float] = field(default_factory=dict)
    """Kind of training that few have measured → by how much an interval is wider."""
    fitted_on: tuple[str, ...] = ()
    """Sources whose rows the constants were fitted on."""

    def value(self, name: str, kind: str = "") -> float:
        """The constant of this kind, else that of every kind."""
        found = self.values.get(f"{name}.{kind}")
        return self.values[name] if found is None else found

    def by_generation(self, name: str, columns: "Columns") -> Times:
        """One value a case, by its GPU's generation."""
        known = [self.value(name, gpu.generation) for gpu in columns.gpus]
        return np.array(known, dtype=np.float64)[columns.gpu_index]

    def by_style(self, name: str, columns: "Columns") -> Times:
        """One value a case, by how its framework launches and fuses."""
        known = [self.value(name, style) for style in STYLES]
        return np.array(known, dtype=np.float64)[columns.style_index]

    def factor(self, key: FactorKey) -> float:
        """1 where nothing is calibrated."""
        found = self.factors.get(key)
        return 1.0 if found is None else found.value_ratio

    def factors_of(self, kind: str, columns: "Columns") -> Times:
        """One factor a case, by its GPU and framework."""
        if not any(key[0] == kind for key in self.factors):
            return np.ones(len(columns))
        table = np.array(
            [
                [self.factor((kind, gpu.name, framework.name)) for framework in columns.frameworks]
                for gpu in columns.gpus
            ]
        )
        return np.asarray(table[columns.gpu_index, columns.framework_index])

    def with_values(self, values: Mapping[str, float]) -> Self:
        """The same with other constants."""
        return replace(self, values={**self.values, **values})

    def with_factors(self, factors: Mapping[FactorKey, Factor]) -> Self:
        """The same with these calibrated."""
        return replace(self, factors={**self.factors, **factors})

    def with_misses(self, misses: tuple[Miss, ...]) -> Self:
        """The same with these in place of what was known of kernels of their kinds."""
        kinds = {miss.kind for miss in misses}
        others = tuple(miss for miss in self.misses if miss.kind not in kinds)
        return replace(self, misses=others + misses)

    def without(self, source: str) -> "Knowledge":
        """Constants and widenings that this source is not in, however its name is written.

        Raises InputError if none were stored.
        """
        name = plain(source)
        if name not in map(plain, self.fitted_on):
            return self._without_widenings_of(source)
        for fit in known_fits():
            left_out = plain(fit.without or "")
            if left_out == name and set(fit.fitted_on) < set(self.fitted_on):
                return replace(_of_fit(fit), factors=self.factors, misses=self.misses)
        raise InputError(
            f"the constants are fitted on {source!r}, and none without it are stored",
            hint="`python -m broadgauge.predict.fitting.constants` stores them",
        )

    def _without_widenings_of(self, source: str) -> "Knowledge":
        """The same, unless a widening rests on this source."""
        ratios = widening_ratios(source)
        if not self.widenings or ratios == widening_ratios():
            return self
        return replace(self, widenings=ratios)


def path_of(case: TrainingCase) -> tuple[str, ...]:
    """Under which name is what joins the nodes calibrated?

    By its transport and nominal rate, as tables of measured steps have no other name for it, and by
    what a factor multiplies: the transport's prior, a measured rate, or what an entry states.
    """
    fabric = case.fabric
    rate = "" if fabric.node_gbps is None else f"{fabric.node_gbps:g}"
    basis = "prior"
    if fabric.measured_node_gbyte_per_s is not None:
        basis = "measured"
    elif fabric.stated_node_gbyte_per_s is not None:
        basis = fabric.name
    return (fabric.transport, rate, str(case.gpus_per_node), basis)


def node_rate_ratios(cases: Sequence[TrainingCase], knowledge: Knowledge | None) -> Times:
    """By what the rate out of a node is multiplied: what is fitted of RDMA, and calibrated."""
    return _by_path(cases, knowledge, _node_rate_ratio)


def across_slowness(cases: Sequence[TrainingCase], knowledge: Knowledge | None) -> Times:
    """By what kernels of several nodes take longer than those of one, where that is calibrated.

    Nodes wait for the slowest of them, and are not all like the one that was measured alone.
    """
    return _by_path(
        cases, knowledge, lambda case, known: known.factor(("across", *path_of(case)[:3]))
    )


def _by_path(
    cases: Sequence[TrainingCase],
    knowledge: Knowledge | None,
    ratio: Callable[[TrainingCase, Knowledge], float],
) -> Times:
    """One value a case, found once for each path; 1 on one node."""
    ratios = np.ones(len(cases))
    if knowledge is None:
        return ratios
    found: dict[tuple[tuple[str, ...], Gpu | str, bool], float] = {}
    for index, case in enumerate(cases):
        if case.nodes == 1:
            continue
        key = (path_of(case), case.own_gpu or case.gpu, _is_nominal_rdma(case.fabric))
        if key not in found:
            found[key] = ratio(case, knowledge)
        ratios[index] = found[key]
    return ratios


def _node_rate_ratio(case: TrainingCase, knowledge: Knowledge) -> float:
    ratio = knowledge.factor(("node_rate", *path_of(case)))
    if not _is_nominal_rdma(case.fabric):
        return ratio
    fitted = knowledge.value("rdma_ratio", case.gpu_entry.generation)
    return ratio * fitted / CATALOG_RDMA_RATIO


def _is_nominal_rdma(fabric: Fabric) -> bool:
    is_rdma = fabric.transport in RDMA_TRANSPORTS or fabric.transport == "unknown"
    is_known = fabric.measured_node_gbyte_per_s or fabric.stated_node_gbyte_per_s or fabric.curves
    return is_rdma and not is_known


@functools.cache
def prior_knowledge() -> Knowledge:
    """Constants as they were before any row of a table was seen."""
    return Knowledge(values={constant.name: constant.value for constant in known_constants()})


@functools.cache
def default_knowledge() -> Knowledge:
    """What is shipped: fitted on all known sources."""
    for fit in known_fits():
        if fit.without is None:
            return _of_fit(fit)
    return prior_knowledge()


def _of_fit(fit: Fit) -> Knowledge:
    return replace(
        prior_knowledge().with_values(fit.constants),
        residuals=fit.residuals,
        widenings=widening_ratios(fit.without),
        fitted_on=fit.fitted_on,
    )
