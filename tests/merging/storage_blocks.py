"""Made-up words of ranks on a storage, for the merger and for what is shown of it."""

from typing import Any

from tests.merging.outcomes import make_case

from broadgauge.messages.storage import CacheProof, StorageBlock, StorageProblem
from broadgauge.specs.case import Case
from broadgauge.specs.storage import Storage
from broadgauge.specs.workload import StorageWorkload

COLD = CacheProof(state="cold", evidence="read_bytes 1.00 of size")
WARM = CacheProof(state="warm", evidence="read_bytes 0.00 of size")
UNKNOWN = CacheProof(state="unknown", evidence="tmpfs keeps no other place")


def storage_case(name: str = "nvme", *, ranks_per_node: int = 2, **keys: Any) -> Case:
    workload = StorageWorkload.model_validate({"kind": "storage", "name": f"phases-{name}", **keys})
    case = make_case(workload, nodes=1, ranks_per_node=ranks_per_node)
    return case.model_copy(update={"storage": Storage(name=name, path=f"/mnt/{name}")})


def block(phase: str, variant: str, **changes: Any) -> StorageBlock:
    """A cold read, or a save."""
    is_write = phase == "checkpoint_saving" or variant == "write"
    fields: dict[str, Any] = {
        "trial_id": "t",
        "phase": phase,
        "variant": variant,
        "asked_cache": None if is_write else "cold",
        "cache": None if is_write else COLD,
        "num_bytes": 1_000_000,
        "stall_s": 1.0,
        "busy_s": 1.0,
    }
    return StorageBlock(**fields | changes)


def problem(phase: str, variant: str, message: str) -> StorageProblem:
    return StorageProblem(trial_id="t", phase=phase, variant=variant, message=message)


def all_phases(stall_s: float = 1.0, durable_s: float = 1.5) -> list[StorageBlock]:
    """What one rank of two says of a small workload, each phase in one variant."""
    return [
        block("raw", "write", num_bytes=10**9, stall_s=1.0, busy_s=1.0),
        block("raw", "read", num_bytes=10**9, stall_s=0.5, busy_s=0.5),
        block("batch_loading", "files", samples=100, stall_s=stall_s),
        block("model_loading", "safetensors, every-rank", num_bytes=10**9, stall_s=stall_s),
        block(
            "checkpoint_saving",
            "torch, sharded",
            num_bytes=10**9,
            stall_s=stall_s,
            durable_s=durable_s,
            durable_evidence="file and folder fsynced",
            parts_s={"serialise": 0.7, "write": 0.3},
        ),
    ]
