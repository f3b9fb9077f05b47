"""What does the predictor know beside the catalog's data sheets? Constants with bounds."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from broadgauge.catalog.constants import known_constants
from broadgauge.catalog.frameworks import STYLES
from broadgauge.predict.columns import Columns
from broadgauge.predict.timeline import Times


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """Constants by name (`gemm_efficiency.ampere`); immutable, so predictions can be repeated."""

    values: Mapping[str, float] = field(default_factory=dict)

    def value(self, name: str, kind: str = "") -> float:
        """The constant of this kind, else that of every kind."""
        if f"{name}.{kind}" in self.values:
            return self.values[f"{name}.{kind}"]
        return self.values[name]

    def by_generation(self, name: str, columns: Columns) -> Times:
        """One value a case, by its GPU's generation."""
        known = [self.value(name, gpu.generation) for gpu in columns.gpus]
        return np.array(known, dtype=np.float64)[columns.gpu_index]

    def by_style(self, name: str, columns: Columns) -> Times:
        """One value a case, by how its framework launches and fuses."""
        known = [self.value(name, style) for style in STYLES]
        return np.array(known, dtype=np.float64)[columns.style_index]

    def with_values(self, values: Mapping[str, float]) -> Self:
        """The same with other constants."""
        return replace(self, values={**self.values, **values})


@functools.cache
def default_knowledge() -> Knowledge:
    """What is shipped."""
    return Knowledge(values={constant.name: constant.value for constant in known_constants()})
