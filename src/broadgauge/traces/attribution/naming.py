"""What do names say: which kernels are FSDP's copies, which ranges load data or save?"""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from broadgauge.traces.explanation import StepPart

_FSDP_KERNELS = re.compile(r"split_with_sizes_copy|chunk_cat")
"""aten's kernels for FSDP2's copies out of all-gathers and into reduce-scatters (torch 2.3 on)."""
_FSDP_CALLS = re.compile(r"^(?:fsdp::|FSDP::all_gather_copy_)")
"""FSDP2's copies as operators (torch 2.2 on) and ranges; what they launch are copies."""
_TORCH_RANGES = re.compile(
    r"^(?:DistributedDataParallel\.|FullyShardedDataParallel|FSDP::|Optimizer\.|autograd::|c10d::"
    r"|(?:gloo|nccl|mpi|ucc):|Torch-Compiled|## Call|CompiledFunction|TorchDynamo|Lazy )"
)
"""Ranges of torch's own whose names are of modules, and do not say what is waited for."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_DATA = re.compile(r"^(?:load|loads|loader|loaders|loading|data.*|(?:mini|micro)?batch(?:es)?)$")
_NO_DATA = frozenset(["balance", "balanced", "balancing", "balancer", "norm", "parallel"])
"""`load_balancing_loss`, `batch_norm`, `data_parallel` load nothing."""
_CHECKPOINT = re.compile(r"^(?:checkpoint.*|ckpt|save|saves|saving|saved)$")


def part_of_range(name: str) -> StepPart | None:
    """Which wait does a range's name tell of? None: no particular one.

    `enumerate(DataLoader)#…`, `load_batch`, `train/data`: data; `save_checkpoint`: checkpoint, also
    where both stand (`load_checkpoint`). `DistributedDataParallel.forward` loads nothing.
    """
    if name.startswith("enumerate(DataLoader)#"):
        return StepPart.DATA_WAIT
    if _TORCH_RANGES.match(name):
        return None
    words = {word.lower() for word in _WORDS.findall(name)}
    if any(map(_CHECKPOINT.match, words)):
        return StepPart.CHECKPOINT
    is_data = any(map(_DATA.match, words)) and not words & _NO_DATA
    return StepPart.DATA_WAIT if is_data else None


def chosen(names: Sequence[str], pattern: re.Pattern[str]) -> npt.NDArray[np.bool_]:
    """`bool[names]`: in which does the pattern stand?"""
    return np.array([bool(pattern.search(name)) for name in names], dtype=bool)


def are_fsdp_kernels(names: Sequence[str]) -> npt.NDArray[np.bool_]:
    return chosen(names, _FSDP_KERNELS)


def are_fsdp_calls(names: Sequence[str]) -> npt.NDArray[np.bool_]:
    return chosen(names, _FSDP_CALLS)


_HOST_COPY = re.compile(r"HtoD|DtoH|HostToDevice|DeviceToHost", re.IGNORECASE)


def are_host_copies(names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Copies over the bus; one within the GPU's memory computes as a kernel does."""
    return chosen(names, _HOST_COPY)


_NO_WORK = re.compile(r"^(?:c10d|autograd|gloo|nccl|FSDP|_c10d_functional|c10d_functional)::")


def are_cpu_work(names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Operators that compute where the CPU is the device: not what holds or asks for others.

    Those of a library (`aten::mm`), and what inductor has compiled (`cpp_fused_…`). A node of
    autograd (`MmBackward0`) holds the operators that do its work, and waits in FSDP's own.
    """
    return np.array(
        [("::" in name or name.startswith("cpp_fused")) and not _NO_WORK.match(name)
         for name in names],
        dtype=bool,
    )  # fmt: skip
