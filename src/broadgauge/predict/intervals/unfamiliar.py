"""What of a case have few measured, and how much wider is its interval for that?

The table that constants and residuals are of is of 16-bit arithmetic, dense models and plain
sharding. What is another kind of training misses by more: widenings.yaml has by how much, from rows
that have it, as a multiple of what kernels miss by; what a step waits for between nodes is as sure
as ever. Of several kinds the widest counts, since rows that have several tell each one's.
A measured step of the same system and the same way of training narrows that, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broadgauge.predict.facts.arrays import Flags, Times
from broadgauge.predict.facts.columns import Columns
from broadgauge.predict.facts.knowledge import Knowledge
from broadgauge.predict.facts.similar_kernels import is_way_measured

NOTHING = "nothing"
KIND_WORDS = {
    "mixture-of-experts": "a mixture of experts",
    "fp8": "FP8",
    "tensor-parallel": "tensor parallelism",
    "pipeline-parallel": "pipeline parallelism",
    "context-parallel": "context parallelism",
}
"""Kind → in words. Expert parallelism comes with the first, sequence parallelism with tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Widenings:
    """One entry a case."""

    width_ratio: Times
    """Of what kernels make of half an interval; 1: nothing of it is unfamiliar."""
    kinds: npt.NDArray[np.str_]
    """The kind whose ratio that is, or NOTHING."""
    is_measured: Flags
    """A step of the same system and way of training was."""

    def added(self, kernels_log: Times) -> Times:
        """Beside what kernels make of half an interval, so that both make `width_ratio`."""
        return np.sqrt(self.width_ratio**2 - 1) * kernels_log


def kinds_of(columns: Columns) -> Mapping[str, Flags]:
    """Which cases are of which kind?"""
    return {
        "mixture-of-experts": np.array([case.model.is_mixture for case in columns.cases], np.bool_),
        "fp8": np.array([case.precision == "fp8" for case in columns.cases], dtype=np.bool_),
        "tensor-parallel": columns.tensor_parallel > 1,
        "pipeline-parallel": columns.pipeline_parallel > 1,
        "context-parallel": columns.context_parallel > 1,
    }


def widenings_of(columns: Columns, knowledge: Knowledge) -> Widenings:
    """By the widest of its kinds."""
    ratio = np.ones(len(columns))
    kinds = np.full(len(columns), NOTHING, dtype=f"<U{max(map(len, KIND_WORDS))}")
    for kind, is_of_kind in kinds_of(columns).items():
        of_kind = knowledge.widenings.get(kind, 1.0)
        is_wider = is_of_kind & (of_kind > ratio)
        ratio = np.where(is_wider, of_kind, ratio)
        kinds = np.where(is_wider, kind, kinds)
    is_measured = is_way_measured(columns.cases, knowledge.misses)
    return Widenings(width_ratio=ratio, kinds=kinds, is_measured=is_measured)
