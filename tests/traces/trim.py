"""Makes a small fixture of a trace of GPUs: `python tests/traces/trim.py TRACE OUT`.

Leaves out the operators of the CPU but FSDP's and c10d's, launches of nothing, flows, and the
arguments that nobody asks for. What stands in tests/traces/recorded with a GPU's name was cut so
from what two H100s wrote on 2026-11-24 (torch 2.11.0, NCCL 2.28.9, NVLink): three encoder layers of
1024, bf16, batch 8 × 512, with DDP, whose rank 1 slept 41 ms before each backward pass (`late`),
and with FSDP2 (`fsdp`).
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

ARGUMENTS = (
    *(
        "correlation",
        "stream",
        "device",
        "grid",
        "block",
        "External id",
        "Collective name",
        "dtype",
    ),
    *("In msg nelems", "Out msg nelems", "Group size", "Process Group Name"),
    *("Process Group Description", "Process Group Ranks"),
)


def trimmed(document: dict[str, Any]) -> dict[str, Any]:
    events = document["traceEvents"]
    on_gpu = {
        event["args"]["correlation"]
        for event in events
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    }
    kept = [_small(event) for event in events if _is_asked_for(event, on_gpu)]
    return {**document, "traceEvents": kept}


def _is_asked_for(event: dict[str, Any], on_gpu: set[int]) -> bool:
    category, name = event.get("cat"), event["name"]
    if category in ("cuda_runtime", "cuda_driver"):
        return event["args"].get("correlation") in on_gpu
    if category == "cpu_op":
        return name.startswith(("fsdp::", "c10d::"))
    return category in ("kernel", "gpu_memcpy", "gpu_memset", "user_annotation")


def _small(event: dict[str, Any]) -> dict[str, Any]:
    given = event.get("args", {})
    arguments = {key: given[key] for key in ARGUMENTS if key in given}
    return {**event, "name": event["name"][:120], "args": arguments}


if __name__ == "__main__":
    with gzip.open(sys.argv[1]) as file:
        text = json.dumps(trimmed(json.load(file)), separators=(",", ":"))
    Path(sys.argv[2]).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
