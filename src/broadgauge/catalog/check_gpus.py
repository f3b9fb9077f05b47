"""Which figures of a GPU contradict physics, its generation, or each other?

The ratios between precisions and the rates a clock are those of NVIDIA's architecture whitepapers
(WP-08019 Pascal, WP-08608 Volta, WP-09183 Turing, GA100, GA102, Ada, H100, RTX Blackwell, Blackwell
brief) and AMD's CDNA 1 to 4 whitepapers.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from broadgauge.catalog.gpus import Gpu, Links, Precision

TOLERANCE_RATIO = 0.02
"""Data sheets round to three digits."""
CLOCK_TOLERANCE_RATIO = 0.12
"""And state peaks at a clock of their own, up to a tenth above what NVML reports (H20)."""

_FP32_FLOPS_A_CLOCK = 256
"""Of one multiprocessor or compute unit at most: 128 lanes, or matrix cores of that rate."""
_HALF_OVER_SINGLE: dict[str, tuple[tuple[float, float], ...]] = {
    "pascal": ((1.9, 2.1),),
    "volta": ((7.3, 8.2),),
    "turing": ((3.9, 4.1), (7.9, 8.2)),
    "ampere": ((1.95, 2.05), (3.9, 4.1), (15.5, 16.5)),
    "ada": ((1.95, 2.05), (3.9, 4.1)),
    "hopper": ((3.2, 3.6), (13.5, 16.5)),
    "blackwell": ((1.95, 2.05), (3.9, 4.1), (28, 33)),
    "cdna1": ((3.9, 4.1),),
    "cdna2": ((3.9, 4.1),),
    "cdna3": ((7.8, 8.2),),
    "cdna4": ((15.5, 16.5),),
}
"""fp16 (accumulating in fp32) over fp32, dense: what the parts of each generation have."""
_HALF_FLOPS_A_CLOCK: dict[str, int] = {
    "pascal": 256,
    "volta": 1024,
    "turing": 1024,
    "ampere": 2048,
    "ada": 1024,
    "hopper": 4096,
    "blackwell": 8192,
    "cdna1": 1024,
    "cdna2": 1024,
    "cdna3": 2048,
    "cdna4": 4096,
}
"""fp16, dense, of one multiprocessor or compute unit at most."""
_NEEDS: dict[Precision, tuple[str, ...]] = {
    "tf32": ("ampere", "ada", "hopper", "blackwell", "cdna3"),
    "bf16": ("ampere", "ada", "hopper", "blackwell", "cdna1", "cdna2", "cdna3", "cdna4"),
    "fp8": ("ada", "hopper", "blackwell", "cdna3", "cdna4"),
    "fp4": ("blackwell", "cdna4"),
}
_LINK_GBYTE_PER_S: dict[str, tuple[float, ...]] = {
    "pascal": (20,),
    "volta": (25,),
    "turing": (25,),
    "ampere": (25, 14.0625),
    "hopper": (25,),
    "blackwell": (50,),
    "cdna1": (46,),
    "cdna2": (50,),
    "cdna3": (64,),
    "cdna4": (76.8,),
}
"""One link, one direction."""
_MEMORY_GBYTE_PER_S: dict[str, tuple[float, float]] = {
    "pascal": (300, 740),
    "volta": (600, 1200),
    "turing": (250, 700),
    "ampere": (200, 2100),
    "ada": (200, 1100),
    "hopper": (1900, 5000),
    "blackwell": (250, 8200),
    "cdna1": (1000, 1300),
    "cdna2": (1500, 3400),
    "cdna3": (5000, 6200),
    "cdna4": (7000, 8200),
}
"""From the slowest to the fastest part of each generation."""
_SWEEP_S = (0.008, 0.2)
"""How long reading all of its memory takes any GPU: 17 ms (V100 16 GB) to 88 ms (L4), and room."""
_PCIE = {
    **dict.fromkeys(("pascal", "volta", "turing"), (3,)),
    **dict.fromkeys(("ampere", "ada", "cdna1", "cdna2"), (4,)),
    **dict.fromkeys(("hopper", "cdna3", "cdna4"), (5,)),
    "blackwell": (5, 6),
}

_LEAST_REACHED_RATIO, _MOST_REACHED_RATIO = 0.4, 1.3
"""Of large matrix products over the stated peak. A board of 70 W reaches a half, GeForce boards
clock up to a fifth above their stated rate; a factor of two is another arithmetic."""


def problems_of_gpu(gpu: Gpu) -> Iterator[str]:
    """One line for each contradiction."""
    yield from _of_support(gpu)
    yield from _of_ratios(gpu)
    yield from _of_clock(gpu)
    yield from _of_products(gpu)
    yield from _of_memory(gpu)
    if gpu.nvlink is not None:
        yield from _of_links(gpu, gpu.nvlink)
    if gpu.pcie_generation not in _PCIE[gpu.generation]:
        yield f"PCIe {gpu.pcie_generation}: no {gpu.generation} GPU has it"


def _of_support(gpu: Gpu) -> Iterator[str]:
    for precision, generations in _NEEDS.items():
        if gpu.peaks.of(precision) is not None and gpu.generation not in generations:
            yield f"a peak of {precision}: {gpu.generation} has no such hardware"


def _of_ratios(gpu: Gpu) -> Iterator[str]:
    half, single = gpu.peaks.fp16_tflops, gpu.peaks.fp32_tflops
    if half is None:
        return
    allowed = _HALF_OVER_SINGLE[gpu.generation]
    if re.fullmatch(r"rtx-\d{4}(-?ti)?", gpu.name):
        allowed = allowed[:1]  # GeForce accumulates in fp32 at half the rate of its larger kin
    if not any(low <= half / single <= high for low, high in allowed):
        known = " or ".join(f"{(low + high) / 2:.3g}" for low, high in allowed)
        yield (
            f"fp16 {half:g} over fp32 {single:g} is {half / single:.3g}; {gpu.generation} has "
            f"{known} (dense, accumulating in fp32): with sparsity, or accumulating in fp16?"
        )
    expected: dict[Precision, tuple[float, float]] = {
        "tf32": (half / 2, half / 2),
        "bf16": (half / 2, half / 2) if gpu.generation == "cdna1" else (half, half),
        "fp8": (2 * half, 2 * half),
        "fp4": (4 * half, 8 * half),
    }
    for precision, (low, high) in expected.items():
        value = gpu.peaks.of(precision)
        if value is None or low * (1 - TOLERANCE_RATIO) <= value <= high * (1 + TOLERANCE_RATIO):
            continue
        between = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        yield (
            f"{precision} {value:g} beside fp16 {half:g}: {between} TFLOP/s would be dense; "
            "is one of them with sparsity?"
        )


def _of_clock(gpu: Gpu) -> Iterator[str]:
    cycles_per_s = gpu.sms * gpu.max_mhz * 1e6 * (1 + CLOCK_TOLERANCE_RATIO)
    for precision, per_clock in (
        ("fp32", _FP32_FLOPS_A_CLOCK),
        ("fp16", _HALF_FLOPS_A_CLOCK[gpu.generation]),
    ):
        peak, most = gpu.peak_flops(precision), per_clock * cycles_per_s  # type: ignore[arg-type]
        if peak is not None and peak > most:
            yield (
                f"{precision} {peak / 1e12:g} TFLOP/s is more than {gpu.sms} multiprocessors at "
                f"{gpu.max_mhz:g} MHz do, {most / 1e12:.4g}"
            )
    if not 800 <= gpu.max_mhz <= 3200:
        yield f"a clock of {gpu.max_mhz:g} MHz"
    if not 50 <= gpu.tdp_watts <= 2000:
        yield f"a power of {gpu.tdp_watts:g} W"


def _of_products(gpu: Gpu) -> Iterator[str]:
    if gpu.products is None:
        return
    reached, precision = gpu.reached_ratio, gpu.products.precision
    if reached is None:
        yield f"products of {precision}, of which no peak is stated"
    elif not _LEAST_REACHED_RATIO <= reached <= _MOST_REACHED_RATIO:
        yield (
            f"products of {precision} that reach {reached:.3g} of the peak: is either with "
            "sparsity, or accumulating in fp16?"
        )


def _of_memory(gpu: Gpu) -> Iterator[str]:
    low, high = _MEMORY_GBYTE_PER_S[gpu.generation]
    rate = gpu.memory_gbyte_per_s
    if not low <= rate <= high:
        yield (
            f"memory bandwidth {rate:g} GB/s: {gpu.generation} parts have {low:g} to {high:g} "
            "(10^9 byte/s)"
        )
    sweep_s = gpu.memory_gib * 2**30 / (rate * 1e9)
    if not _SWEEP_S[0] <= sweep_s <= _SWEEP_S[1]:
        yield (
            f"{gpu.memory_gib} GiB at {rate:g} GB/s are read in {sweep_s * 1e3:.3g} ms; no GPU "
            "is so far from 20 to 90"
        )


def _of_links(gpu: Gpu, links: Links) -> Iterator[str]:
    if gpu.generation not in _LINK_GBYTE_PER_S:
        yield f"NVLink: no {gpu.generation} GPU has it"
        return
    per_link = links.gbyte_per_s / links.links
    known = _LINK_GBYTE_PER_S[gpu.generation]
    if not any(abs(per_link / rate - 1) <= TOLERANCE_RATIO for rate in known):
        both = any(abs(per_link / rate / 2 - 1) <= TOLERANCE_RATIO for rate in known)
        yield (
            f"{links.gbyte_per_s:g} GB/s over {links.links} links is {per_link:.4g} a link; "
            f"{gpu.generation} has {' or '.join(f'{rate:g}' for rate in known)} one way"
            + (": are these both directions?" if both else "")
        )
    for board in links.boards:
        is_switched = board.topology == "nvswitch"
        if is_switched != (board.pair_links is None):
            yield f"board of {board.gpus}: `pair_links` is of a mesh or a bridge, not of a switch"
        elif board.pair_links is not None and board.pair_links > links.links:
            yield f"board of {board.gpus}: {board.pair_links} links a pair, of {links.links}"
        if board.topology == "bridge" and board.gpus != 2:
            yield f"a bridge joins two GPUs, not {board.gpus}"
    sizes = sorted(board.gpus for board in links.boards)
    for size, next_size in pairwise(sizes):
        if size == next_size:
            yield f"two boards of {size}"
