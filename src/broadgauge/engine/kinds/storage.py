"""What does the engine know of the phases on a storage? The bytes that they write and read."""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.engine.kinds.kind import KindInEngine
from broadgauge.engine.shapes import ResolvedCluster
from broadgauge.engine.storage_rate import storage_gbyte_per_s
from broadgauge.engine.transfers import PROCESS_GROUP_S
from broadgauge.messages.storage import READ_ACCESSES, StoragePhaseWord
from broadgauge.messages.storage_bytes import StorageTraffic, total_traffic, traffic_by_phase
from broadgauge.specs.case import Case
from broadgauge.specs.errors import Problem
from broadgauge.specs.storage import Storage
from broadgauge.specs.storage_places import place_of
from broadgauge.specs.storage_tasks import storage_task
from broadgauge.specs.units import show_size
from broadgauge.specs.workload import StorageWorkload

MOST_STORAGE_ROWS = 48
"""Of one trial: at most 1,100 bytes each, so that its record stays below 64 KiB."""
_REQUEST_S = 0.002
_IMPORTS_S = 3.0
"""Loaders, formats, and their workers' starts."""


@dataclass(frozen=True, slots=True)
class StorageInEngine(KindInEngine):
    """Phases on a storage as they are planned."""

    storage: StorageWorkload

    def trial_s(self, case: Case) -> float:
        """Bytes at the rate that the storage is said to have, requests, and the steps between
        batches."""
        traffic = self.storage_traffic(case)
        storage = case.storage
        rate_gbyte_s = storage_gbyte_per_s(storage, reads=True)
        request_s = _REQUEST_S
        if storage is not None and storage.emulated is not None:
            request_s += storage.emulated.request_latency_s
        requests = (traffic.puts_count + traffic.gets_count) / case.world_size
        moved_s = (traffic.written_bytes + traffic.read_bytes) / (rate_gbyte_s * 1e9)
        batches = self.storage.batch_loading
        steps_s = 0.0
        if batches is not None:
            passes = len(batches.layouts) * len(self.storage.caches)
            steps_s = passes * batches.step_s * batches.samples / batches.batch
        start_s = PROCESS_GROUP_S[case.backend] + _IMPORTS_S
        return start_s + moved_s + requests * request_s + steps_s

    @property
    def uses_folder(self) -> bool:
        return False

    def storage_traffic(self, case: Case) -> StorageTraffic:
        return total_traffic(traffic_of(self.storage, case))

    def problems(self, where: str, cluster: ResolvedCluster) -> Iterator[Problem]:
        """More bytes than may be written, and trials too large for a record."""
        rows = num_rows(self.storage)
        if rows > MOST_STORAGE_ROWS:
            message = (
                f"{rows} measurements in one trial (phases x variants x caches), "
                f"and {MOST_STORAGE_ROWS} fit in its record"
            )
            yield Problem(f"{where}.caches", message, "the phases in two workloads")
        largest = max(cluster.shapes, key=lambda shape: (shape.world_size, shape.nodes))
        place = place_of(Storage(name="any", path="/any"))
        by_phase = traffic_by_phase(
            storage_task(self.storage, place),
            nodes=largest.nodes,
            ranks_per_node=largest.ranks_per_node,
        )
        written_bytes = total_traffic(by_phase).written_bytes
        if written_bytes > self.storage.most_bytes:
            parts = ", ".join(
                f"{phase} {show_size(each.written_bytes)}" for phase, each in by_phase.items()
            )
            message = (
                f"a trial of {largest} writes {show_size(written_bytes)} ({parts}), "
                f"and `most_bytes` is {show_size(self.storage.most_bytes)}"
            )
            hint = f"`most_bytes: {_whole_gib(written_bytes)} GiB`, or less of the largest phase"
            yield Problem(f"{where}.most_bytes", message, hint)


def traffic_of(workload: StorageWorkload, case: Case) -> dict[StoragePhaseWord, StorageTraffic]:
    """What one trial of the case writes, reads and asks for, by phase."""
    storage = case.storage or Storage(name="any", path="/any")
    task = storage_task(workload, place_of(storage))
    return traffic_by_phase(task, nodes=case.nodes, ranks_per_node=case.ranks_per_node)


def num_rows(workload: StorageWorkload) -> int:
    """Of a trial's record: a phase in a variant, and of reads in a state of the cache."""
    states, rows = len(workload.caches), 0
    if workload.raw is not None:
        reads = sum(access in READ_ACCESSES for access in workload.raw.accesses)
        rows += states * reads + len(workload.raw.accesses) - reads
    if workload.batch_loading is not None:
        rows += states * len(workload.batch_loading.layouts)
    if workload.model_loading is not None:
        model = workload.model_loading
        rows += states * len(model.formats) * len(model.load_by)
    if workload.checkpoint_saving is not None:
        rows += len(workload.checkpoint_saving.formats)
    return rows


def _whole_gib(num_bytes: int) -> int:
    return -(-num_bytes // 1024**3)
