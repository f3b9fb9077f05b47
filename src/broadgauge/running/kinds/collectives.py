"""What do collectives hold on a node beside their libraries?"""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.manifests.memory_need import MemoryPart, memory_part
from broadgauge.running.kinds.kind import KindInRunning
from broadgauge.specs.case import Case
from broadgauge.specs.workloads.workload import CollectivesWorkload


@dataclass(frozen=True, slots=True)
class CollectivesInRunning(KindInRunning):
    """Collectives as they are started."""

    collectives: CollectivesWorkload

    def held_on_host(self, case: Case) -> Iterator[MemoryPart]:
        """On CPUs what is sent, what comes, and as much again while a result is checked."""
        if case.device == "cpu":
            message_bytes = 4 * case.ranks_per_node * max(self.collectives.sizes_bytes())
            yield memory_part("messages", message_bytes, "4 × the largest size a rank")
