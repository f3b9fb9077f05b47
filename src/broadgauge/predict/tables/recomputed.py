"""How much did a training recompute whose stated settings would not have fitted?

A step that was measured fitted into its GPUs. Where what a row states needs more memory than they
have, and full recomputation less, some of the layers were recomputed whole: as few as fit, since
each costs time. That is told of the table. Source: foundation-model-stack/fms-fsdp,
fms_fsdp/policies/ac_handler.py (activation checkpointing on a part p of the blocks); NVIDIA/
Megatron-LM, `--recompute-num-layers`. What is moved to a host's memory is not known well enough.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from broadgauge.predict.case import TrainingCase
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.memory.fullest_gpu import memory_table


def as_they_ran(cases: Sequence[TrainingCase]) -> list[TrainingCase]:
    """The same cases, with layers recomputed in those that would not have fitted."""
    if not cases:
        return []
    stated = memory_table(columns_of(cases))
    capacity = stated.capacity_bytes
    layers = np.array([float(case.model.layers) for case in cases])
    one_bytes, all_bytes = _total_bytes(cases, 1 / layers), _total_bytes(cases, np.ones(len(cases)))
    is_known = np.array([not case.cpu_offload for case in cases])
    is_helped = is_known & (stated.total_bytes > capacity) & (all_bytes <= capacity)
    # From the first on each layer saves as much. The first saves nothing: one is whole at a time.
    each_bytes = np.where(is_helped, one_bytes - all_bytes, 1.0) / np.maximum(1.0, layers - 1)
    count = 1.0 + np.ceil((one_bytes - capacity) / each_bytes)
    ratios = np.where(is_helped, np.clip(count, 1.0, layers) / layers, 0.0)
    return [
        replace(case, recomputed_ratio=float(ratio)) if ratio > 0.0 else case
        for case, ratio in zip(cases, ratios, strict=True)
    ]


def _total_bytes(cases: Sequence[TrainingCase], ratios: Times) -> Times:
    pairs = zip(cases, ratios.tolist(), strict=True)
    return memory_table(
        columns_of([replace(case, recomputed_ratio=ratio) for case, ratio in pairs])
    ).total_bytes
