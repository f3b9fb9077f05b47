"""What does the engine know of a phase on a storage? Its bytes, and where it can't run."""

from dataclasses import dataclass

from broadgauge.engine.kinds.kind import KindInEngine
from broadgauge.engine.transfers import PROCESS_GROUP_S
from broadgauge.specs.case import Case
from broadgauge.specs.workloads.workload import StorageWorkload

SLOW_GBYTE_PER_S = 0.2
"""Where nothing is said of the storage. A guess: a network disk of a cloud."""
_BETWEEN_S = 0.05
"""Marks and counters, at each repetition."""


@dataclass(frozen=True, slots=True)
class StorageInEngine(KindInEngine):
    """A phase as it is planned."""

    storage: StorageWorkload

    def trial_s(self, case: Case) -> float:
        """Ranks of a node share what the storage reads and writes."""
        workload = self.storage
        of_node = workload.size * case.ranks_per_node / 1e9
        said = case.storage
        read = (said and said.read_gbyte_per_s) or SLOW_GBYTE_PER_S
        write = (said and said.write_gbyte_per_s) or SLOW_GBYTE_PER_S
        once_s = of_node / read + of_node / write + 2 * _BETWEEN_S
        return PROCESS_GROUP_S[case.backend] + (workload.repetitions + 1) * once_s

    def written_bytes(self, case: Case) -> int:
        return self.storage.written_bytes * case.world_size

    @property
    def uses_folder(self) -> bool:
        return False
