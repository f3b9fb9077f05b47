"""What do the phases on a storage hold on a node, and is a folder that they use there?"""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.manifests.memory_need import MemoryPart, memory_part
from broadgauge.running.kinds.kind import KindInRunning
from broadgauge.specs.case import Case
from broadgauge.specs.workload import StorageWorkload


@dataclass(frozen=True, slots=True)
class StorageInRunning(KindInRunning):
    """Phases on a storage as they are started."""

    storage: StorageWorkload

    def held_on_host(self, case: Case) -> Iterator[MemoryPart]:
        """The page cache is not counted: the kernel takes it back."""
        model, saves = self.storage.model_loading, self.storage.checkpoint_saving
        if model is not None:
            held_bytes = 2 * case.ranks_per_node * model.model_bytes
            yield memory_part("a model", held_bytes, "2 × `model_bytes` a rank, while it is read")
        if saves is not None:
            ranks = case.world_size if saves.is_sharded else 1
            held_bytes = 2 * case.ranks_per_node * saves.checkpoint_bytes // ranks
            yield memory_part("a checkpoint", held_bytes, "2 × a rank's part of it")
