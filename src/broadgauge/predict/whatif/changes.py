"""What is asked of a run, and what is answered? The types of `whatif`."""

from dataclasses import dataclass

from broadgauge.predict.case import SplitStrategy
from broadgauge.predict.prediction import Interval
from broadgauge.predict.runs.cases import RunCase
from broadgauge.predict.runs.network import Basis, CarriedFabric
from broadgauge.specs.networks.network import AnyNetwork


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to be otherwise; None: as it was."""

    label: str = ""
    network: AnyNetwork | None = None
    """Emulated on the run's machine: another rate, or another network of the run."""
    kind: "NamedNetwork | None" = None
    """One of the catalog."""
    nodes: int | None = None
    strategy: SplitStrategy | None = None
    accumulation: int | None = None
    gradient_bytes: float | None = None

    @property
    def is_on_own_network(self) -> bool:
        """Is no other network asked for?"""
        return self.network is None and self.kind is None

    @property
    def is_nothing(self) -> bool:
        """Is everything as it was?"""
        values = (self.network, self.kind, self.nodes, self.strategy)
        return all(each is None for each in (*values, self.accumulation, self.gradient_bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedNetwork:
    """A network of the catalog, and what its collectives carry of it at least and at most."""

    carried: CarriedFabric
    label: str
    gbyte_per_s: float
    low_gbyte_per_s: float
    high_gbyte_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfAnswer:
    """A step as it would be."""

    label: str
    nodes: int
    step_s: Interval
    """80 %."""
    tokens_per_s: float
    speedup_ratio: float
    """Of tokens/s over the measured."""
    compute_s: float
    """Without communication."""
    exposed_s: float
    """Waiting for communication."""
    network_bytes: float
    basis: Basis | None
    """What the network's speed rests on; None: nominal figures of the catalog."""
    is_measured: bool
    """Nothing differs from the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Another network of the same run, predicted from the one that was chosen."""

    label: str
    measured_s: float
    predicted_s: float

    @property
    def error_ratio(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted_s / self.measured_s - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The answers, and what they rest on."""

    run_name: str
    base: RunCase
    without_s: float
    """The step without communication."""
    is_without_measured: bool
    """False: no step with communication off was recorded, and the model's share was taken."""
    communication_ratio: float
    """By which the model's communication was stretched to meet the run's step."""
    excess_s: float
    """Of the step, that neither its compute nor the modelled communication explains."""
    is_identified: bool
    """False: the step hardly waits for its network, so it can't tell how fast that is."""
    basis: Basis
    """What the own network's speed rests on."""
    machine_words: str
    """What the shape of the compute rests on."""
    answers: tuple[WhatIfAnswer, ...]
    checks: tuple[Check, ...]

    @property
    def exposed_ratio(self) -> float:
        """Share of the measured step that waits for communication."""
        return 1 - self.without_s / self.base.step_s.value
