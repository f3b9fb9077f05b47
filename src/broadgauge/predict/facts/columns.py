"""What do many cases say, as arrays? Read once here; all costs are computed on columns.

Names (GPUs, frameworks) are looked up once for each different one; columns hold their facts.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from broadgauge.catalog.frameworks import STYLES, Framework, framework_named
from broadgauge.catalog.gpus import Gpu, find_gpu_named
from broadgauge.predict.case import Precision, TrainingCase
from broadgauge.predict.facts.arrays import Flags, Indices, Times
from broadgauge.predict.facts.fabric_columns import FabricColumns, fabric_columns
from broadgauge.predict.facts.knowledge import Knowledge, across_slowness, node_rate_ratios
from broadgauge.predict.facts.shapes import Shapes, infer_shapes
from broadgauge.predict.facts.zero_stage import zero_stage

Entry = TypeVar("Entry")
Name = TypeVar("Name", bound=Hashable)

ELEMENT_BYTES: dict[Precision, float] = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 2}
"""Of an activation: fp8 is for matrix products only. Source: Micikevicius et al. 2022 (arXiv
2209.05433), and Transformer Engine's user guide."""
TENSOR_CORE_FALLBACKS: dict[Precision, tuple[Precision, ...]] = {
    "fp32": ("fp32",),
    "tf32": ("tf32", "fp32"),
    "fp16": ("fp16", "fp32"),
    "bf16": ("bf16", "fp32"),
    "fp8": ("fp8", "bf16", "fp16", "fp32"),
}
"""Where the hardware lacks a precision, what does its work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """One entry a case in every array."""

    cases: Sequence[TrainingCase]
    gpus: tuple[Gpu, ...]
    """Those that occur, each once; `gpu_index` points into them."""
    frameworks: tuple[Framework, ...]
    gpu_index: Indices
    framework_index: Indices
    style_index: Indices
    """Into STYLES."""
    shapes: Shapes
    fabric: FabricColumns
    nodes: Times
    gpus_per_node: Times
    data_parallel: Times
    tensor_parallel: Times
    pipeline_parallel: Times
    virtual_stages: Times
    context_parallel: Times
    expert_parallel: Times
    seq_len: Times
    micro_batch: Times
    """No more than a rank's part of the global batch."""
    micro_batches: Times
    """Passes a rank makes in each step."""
    gemm_flops: Times
    """FLOP/s at the peak of the matrix products' precision."""
    attention_flops: Times
    """FLOP/s at the peak of attention's precision: 8-bit cases keep it at 16."""
    memory_rate: Times
    """byte/s of the GPU's memory."""
    sms: Times
    pcie_rate: Times
    """byte/s of the GPU's slot, one way."""
    element_bytes: Times
    is_encoder: Flags
    is_sequence_parallel: Flags
    is_flash: Flags
    is_compiled: Flags
    is_lora: Flags
    is_quantized: Flags
    is_offloaded: Flags
    recomputed_ratio: Times
    """Of the layers, those whose forward pass is repeated; 1: full recomputation."""
    is_selective_recompute: Flags
    is_sharded: Flags
    """Parameters, gradients and optimizer state over the data-parallel ranks (ZeRO-3, FSDP)."""
    is_replicated_shard: Flags
    """HSDP: sharded within a node."""
    is_optimizer_sharded: Flags
    """ZeRO-1 and above."""
    is_fp32: Flags
    """Matrix products without tensor cores: asked for, or (tf32 on Volta) all that there is."""
    node_rate_ratio: Times
    """What is fitted and calibrated of the rate out of a node, over what costs/network.py has."""
    link_rate_ratio: Times
    """What is calibrated of the links inside a node."""
    across_slowness: Times
    """What is calibrated of kernels on several nodes, over those on one."""

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def tokens(self) -> Times:
        """Of one micro-batch on one rank, its part of the sequence."""
        return self.micro_batch * self.seq_len / self.context_parallel

    @property
    def stage_layers(self) -> Times:
        """Of the pipeline stage that has most: 32 layers on 5 stages are 7, 7, 6, 6 and 6."""
        return np.ceil(self.shapes.layers / self.pipeline_parallel)


def columns_of(cases: Sequence[TrainingCase], knowledge: Knowledge | None = None) -> Columns:
    """Raises InputError for a GPU that neither its case nor the catalog has.

    `knowledge` is for what it says of networks; without it they are as the catalog has them.
    """
    gpus, gpu_index = _lookup([case.own_gpu or case.gpu for case in cases], _gpu)
    frameworks, framework_index = _lookup([case.framework for case in cases], framework_named)
    precision = np.array([case.precision for case in cases], dtype=np.str_)
    numbers = _numbers(cases)
    flags: dict[str, Any] = _flags(cases)
    styles = np.array([STYLES.index(framework.style) for framework in frameworks], np.intp)
    gemm_flops = _peaks(gpus, gpu_index, precision)
    style_index = np.where(flags["is_compiled"], STYLES.index("compiled"), styles[framework_index])
    pieces = numbers["global_batch"] / (numbers["micro_batch"] * numbers["data_parallel"])
    numbers["micro_batch"] = numbers["micro_batch"] * np.minimum(1.0, pieces)
    del numbers["global_batch"]
    is_full = np.array([case.recompute == "full" for case in cases])
    numbers["recomputed_ratio"] = np.where(is_full, 1.0, numbers["recomputed_ratio"])
    columns = Columns(
        cases=cases,
        gpus=gpus,
        frameworks=frameworks,
        gpu_index=gpu_index,
        framework_index=framework_index,
        style_index=style_index,
        shapes=infer_shapes([case.model for case in cases]),
        fabric=fabric_columns(cases),
        micro_batches=np.maximum(1.0, pieces),
        gemm_flops=gemm_flops,
        attention_flops=_peaks(gpus, gpu_index, np.where(precision == "fp8", "bf16", precision)),
        memory_rate=np.array([gpu.memory_gbyte_per_s * 1e9 for gpu in gpus])[gpu_index],
        sms=np.array([float(gpu.sms) for gpu in gpus])[gpu_index],
        pcie_rate=np.array([gpu.pcie_gbyte_per_s * 1e9 for gpu in gpus])[gpu_index],
        element_bytes=_mapped(precision, ELEMENT_BYTES),
        is_fp32=gemm_flops == _peaks(gpus, gpu_index, np.full(len(cases), "fp32")),
        node_rate_ratio=node_rate_ratios(cases, knowledge),
        link_rate_ratio=np.ones(len(cases)),
        across_slowness=across_slowness(cases, knowledge),
        **numbers,
        **flags,
    )
    if knowledge is None or not knowledge.factors:
        return columns
    return replace(columns, link_rate_ratio=knowledge.factors_of("link_rate", columns))


def _gpu(known: Gpu | str) -> Gpu:
    return known if isinstance(known, Gpu) else find_gpu_named(known)


def _lookup(
    names: Sequence[Name], find: Callable[[Name], Entry]
) -> tuple[tuple[Entry, ...], Indices]:
    """Each different name's entry, and for each case which of them it is."""
    order = {name: index for index, name in enumerate(dict.fromkeys(names))}
    return tuple(find(name) for name in order), np.array([order[name] for name in names], np.intp)


def _numbers(cases: Sequence[TrainingCase]) -> dict[str, Any]:
    names = (
        *("nodes", "gpus_per_node", "data_parallel", "tensor_parallel", "pipeline_parallel"),
        *("virtual_stages", "context_parallel", "expert_parallel", "seq_len", "micro_batch"),
        *("global_batch", "recomputed_ratio"),
    )
    table = np.array(list(map(attrgetter(*names), cases)), dtype=np.float64).reshape(-1, len(names))
    return {name: np.ascontiguousarray(table[:, index]) for index, name in enumerate(names)}


def _flags(cases: Sequence[TrainingCase]) -> dict[str, Flags]:
    """What is yes or no of each case."""
    strategy = np.array([case.strategy for case in cases], dtype=np.str_)
    stage = np.array([zero_stage(case) for case in cases])
    recompute = np.array([case.recompute for case in cases], dtype=np.str_)
    is_hsdp = strategy == "hsdp"
    is_sharded = is_hsdp | (strategy == "fsdp") | (stage >= 3)

    def flag(name: str) -> Flags:
        return np.array(list(map(attrgetter(name), cases)), dtype=np.bool_)

    return {
        "is_encoder": np.array([case.model.architecture == "encoder" for case in cases], np.bool_),
        "is_sequence_parallel": flag("sequence_parallel"),
        "is_flash": flag("flash_attention"),
        "is_compiled": flag("compiled"),
        "is_lora": flag("lora"),
        "is_quantized": flag("quantized_base"),
        "is_offloaded": flag("cpu_offload"),
        "is_selective_recompute": recompute == "selective",
        "is_sharded": is_sharded,
        "is_replicated_shard": is_hsdp,
        "is_optimizer_sharded": is_sharded | (stage >= 1),
    }


def _peaks(gpus: Sequence[Gpu], gpu_index: Indices, precision: npt.NDArray[np.str_]) -> Times:
    """FLOP/s of the precision asked for, or of what does its work."""
    peaks = np.zeros(len(gpu_index))
    for name, fallbacks in TENSOR_CORE_FALLBACKS.items():
        of_gpus = [
            next(peak for each in fallbacks if (peak := gpu.peak_flops(each)) is not None)
            for gpu in gpus
        ]
        mask = precision == name
        peaks[mask] = np.array(of_gpus)[gpu_index[mask]]
    return peaks


def _mapped(names: npt.NDArray[np.str_], values: dict[Precision, float]) -> Times:
    result = np.zeros(len(names))
    for name, value in values.items():
        result[names == name] = value
    return result
