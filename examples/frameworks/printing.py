"""What does a rank print? JSON lines of rank 0, and how the ranks train."""

import json
import os
import time
from typing import Any

import psutil
import torch
from accelerate import Accelerator, DistributedType

LAUNCHED_S = psutil.Process().create_time()
"""When this rank's process was started, so that imports count, too."""


def say(**fields: Any) -> None:
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps(fields), flush=True)


def awaited_s(device: torch.device) -> float:
    """The clock, once the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def refuse_silent_ddp(accelerator: Accelerator, *, wants_fsdp: bool, is_allowed: bool) -> None:
    """Is it FSDP, where FSDP was asked for? Accelerate has it on accelerators only: with several
    ranks on CPUs it takes DDP, with one rank it takes none, and says neither.

    Source: accelerate 1.15, state.py, `AcceleratorState.__init__`.
    """
    kind = accelerator.distributed_type
    say(distributed_type=kind.value, ranks=accelerator.num_processes)
    if not wants_fsdp or kind is DistributedType.FSDP or is_allowed:
        return
    raise SystemExit(
        f"FSDP was asked for, and Accelerate trains by {kind.value} on {accelerator.device.type}; "
        "--allow_ddp_on_cpu accepts that"
    )
