"""Which rows are constants fitted on? A table of published step times, as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from broadgauge.predict.case import RDMA_TRANSPORTS
from broadgauge.predict.facts.arrays import Flags, Times
from broadgauge.predict.facts.columns import Columns, columns_of
from broadgauge.predict.tables.table import StepRow

LEFT_OUT_FLAG = "CPU offload"
"""Its host and its PCIe traffic are in no catalog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Rows of a table as arrays."""

    sources: tuple[str, ...]
    columns: Columns
    measured_s: Times
    is_used: Flags
    """Rows that may say something of constants."""
    is_rdma: Flags
    """Rows whose rate out of a node rests on a nominal RDMA rate."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of sources, in the table's order."""
        return tuple(dict.fromkeys(self.sources))

    def of(self, source: str) -> Flags:
        """Which rows are this source's?"""
        return np.array([each == source for each in self.sources])


def sample_of(rows: Sequence[StepRow]) -> Sample:
    """Everything that fits need of a table."""
    cases = [row.case for row in rows]
    return Sample(
        sources=tuple(row.source for row in rows),
        columns=columns_of(cases),
        measured_s=np.array([row.step_time_s for row in rows]),
        is_used=np.array([LEFT_OUT_FLAG not in row.flags for row in rows]),
        is_rdma=np.array(
            [
                case.nodes > 1
                and case.fabric.transport in RDMA_TRANSPORTS
                and case.fabric.node_gbps is not None
                for case in cases
            ]
        ),
    )
