"""What does a phase on a storage need to be started?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from broadgauge.agent.bundle import STORAGE_POD_PARTS
from broadgauge.manifests.memory_need import MemoryPart, memory_part
from broadgauge.messages.storage import BatchesPhase, CheckpointPhase, LoadPhase, RawPhase
from broadgauge.messages.storage_memory import (
    RanksOfNode,
    bytes_to_load,
    bytes_to_load_batches,
    bytes_to_save,
)
from broadgauge.running.kinds.kind import KindInRunning
from broadgauge.specs.case import Case
from broadgauge.specs.workloads.gpt import DATA_TYPE_BYTES
from broadgauge.specs.workloads.tasks import storage_task
from broadgauge.specs.workloads.workload import AnyPhase


@dataclass(frozen=True, slots=True)
class StorageInRunning(KindInRunning):
    """Any phase as it is started."""

    storage: AnyPhase

    @property
    def pod_parts(self) -> tuple[str, ...]:
        return STORAGE_POD_PARTS

    def held_on_host(self, case: Case) -> Iterator[MemoryPart]:
        """As ranks count it themselves, on the node that needs most: files are written by one node,
        or by each where none shares the path."""
        ranks = RanksOfNode(
            world_size=case.world_size,
            ranks_per_node=case.ranks_per_node,
            is_first=True,
            is_on_gpus=case.device == "cuda",
        )
        counted = "as the ranks count it"
        match storage_task(self.storage, case).phase:
            case RawPhase():
                return
            case CheckpointPhase() as saved:
                yield memory_part("state and what is saved", bytes_to_save(saved, ranks), counted)
            case LoadPhase() as loaded:
                shape = loaded.model
                needed_bytes = bytes_to_load(
                    loaded,
                    ranks,
                    largest_bytes=shape.vocabulary * shape.hidden * DATA_TYPE_BYTES[loaded.dtype],
                    is_for_all=False,
                    is_on_memory=False,
                )
                yield memory_part("model, and its file while it is made", needed_bytes, counted)
            case BatchesPhase() as batches:
                needed_bytes = bytes_to_load_batches(batches, ranks)
                yield memory_part(
                    "workers that load batches", needed_bytes, "measured: 11 MiB each"
                )
            case unknown:
                assert_never(unknown)
