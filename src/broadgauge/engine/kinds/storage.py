"""What does the engine know of a phase on a storage? Its bytes, and where it can't run."""

from dataclasses import dataclass

from broadgauge.engine.kinds.kind import KindInEngine
from broadgauge.engine.transfers import PROCESS_GROUP_S, transfer_s
from broadgauge.specs.case import Case
from broadgauge.specs.workloads.workload import StorageWorkload

SLOW_GBYTE_PER_S = 0.2
"""Where nothing is said of the storage. A guess: a network disk of a cloud."""
MODEL_S = 3.0
"""To import what shards a model, and to build it."""
MADE_S_PER_GBYTE = 2.0
"""To make a state and to compare it with what was read. A guess: one core, and memory."""
SAMPLES_S_PER_GBYTE = 10.0
"""To make samples, and to compare those of the first epoch. Measured: 60 to 200 MB/s are made."""
_BETWEEN_S = 0.05
"""Marks and counters, at each repetition."""


@dataclass(frozen=True, slots=True)
class StorageInEngine(KindInEngine):
    """A phase as it is planned."""

    storage: StorageWorkload

    def trial_s(self, case: Case) -> float:
        """Ranks of a node share what the storage reads and writes."""
        workload = self.storage
        write_s, read_s, moved_s = self._once_s(case)
        found_s = self._made_s + workload.writes * write_s + workload.reads * read_s
        found_s += workload.idle_s(case.world_size) + (workload.repetitions + 1) * moved_s
        return PROCESS_GROUP_S[case.backend] + found_s

    def warm_up_s(self, case: Case) -> float:
        """Content that ranks make is written, read and compared once."""
        return self._made_s + sum(self._once_s(case)) if self._made_s else 0.0

    @property
    def _made_s(self) -> float:
        """To make content and to compare it; 0: the kernel's random bytes do."""
        found_s = self.storage.samples_bytes / 1e9 * SAMPLES_S_PER_GBYTE
        if self.storage.model_bytes:
            found_s += MODEL_S + self.storage.model_bytes / 1e9 * MADE_S_PER_GBYTE
        return found_s

    def _once_s(self, case: Case) -> tuple[float, float, float]:
        """To write all files, to read them, and to send of them what ranks send each other."""
        workload = self.storage
        of_node = workload.node_bytes(case.world_size, case.nodes) / 1e9
        expected = (None, None) if case.storage is None else case.storage.expected_gbyte_per_s
        read, write = (rate or SLOW_GBYTE_PER_S for rate in expected)
        is_moved = workload.moved_bytes and case.world_size > 1
        moved_s = transfer_s(case, "all_gather", workload.moved_bytes) if is_moved else 0.0
        return of_node / write + _BETWEEN_S, of_node / read + _BETWEEN_S, moved_s

    def written_bytes(self, case: Case) -> int:
        return self.storage.written_bytes(case.world_size)

    def why_not_run(self, case: Case) -> str | None:
        return self.storage.why_not_split(case.world_size)

    @property
    def uses_folder(self) -> bool:
        return False
