"""Which gradients does a rank hold, and in which buckets does DDP reduce them?"""

import numpy as np

from broadgauge.predict.costs.kernels import HBM_EFFICIENCY
from broadgauge.predict.facts.arrays import Flags, Times
from broadgauge.predict.facts.columns import Columns
from broadgauge.predict.facts.element_sizes import gradient_bytes
from broadgauge.predict.facts.shapes import ADAPTER_RATIO

FIRST_BUCKET_BYTES = 2.0**20
BUCKET_BYTES = 25 * 2.0**20
"""Source: torch.nn.parallel.DistributedDataParallel, `bucket_cap_mb` and the first bucket's cap."""


def local_layer(columns: Columns) -> Times:
    """Parameters of a layer on a rank before sharding: experts are spread, the rest is not."""
    return columns.shapes.held_layer(columns.expert_parallel) / columns.tensor_parallel


def spread_share(columns: Columns) -> Times:
    """Of a rank's layer, experts that fewer ranks hold than share its gradients: 0 to 1."""
    held = columns.shapes.held_layer(columns.expert_parallel)
    share = columns.shapes.expert_params / columns.expert_parallel / held
    return np.where(columns.expert_parallel > 1, share, 0.0)


def local_adapters(columns: Columns) -> Times:
    """LoRA's parameters of a layer on a rank; where nobody has counted them, a share of all."""
    counted = columns.shapes.adapter_params / columns.tensor_parallel
    return np.where(np.isnan(counted), ADAPTER_RATIO * local_layer(columns), counted)


def trained_in_layer(columns: Columns) -> Times:
    """Parameters of a layer on a rank that have gradients."""
    return np.where(columns.is_lora, local_adapters(columns), local_layer(columns))


def trained_outside(columns: Columns, params: Times) -> Times:
    """The same of these, which are in no layer: there, adapters that were counted are none."""
    is_counted = ~np.isnan(columns.shapes.adapter_params)
    share = np.where(is_counted, 0.0, ADAPTER_RATIO)
    return params * np.where(columns.is_lora, share, 1.0)


def overlaps(columns: Columns) -> Flags:
    """Are whole gradients reduced beside the backward pass? A pipeline does it at the end."""
    habit = np.array([framework.overlaps_gradients for framework in columns.frameworks])
    is_ddp = np.array([case.strategy == "ddp" for case in columns.cases])
    return np.asarray(habit[columns.framework_index] & is_ddp & (columns.pipeline_parallel == 1))


def local_gradients(columns: Columns) -> tuple[Times, Times]:
    """Bytes of a rank's gradients: of one layer, and of the embedding (once)."""
    split = columns.tensor_parallel
    shapes, width = columns.shapes, gradient_bytes(columns)
    each = trained_in_layer(columns)
    table = np.minimum(shapes.vocabulary * shapes.hidden, shapes.embedding_params)
    table = trained_outside(columns, table)
    return each * width, table / split * width


def loose_gradients(columns: Columns) -> Times:
    """Bytes of a rank's gradients that are in no layer and no table: learned positions and the last
    norm. They are ready as late as the embedding's."""
    shapes = columns.shapes
    loose = shapes.outside_params - shapes.embedding_params
    return trained_outside(columns, loose) / columns.tensor_parallel * gradient_bytes(columns)


def is_untied(columns: Columns) -> Flags:
    """Is the head a table of its own, whose gradients come first?"""
    shapes = columns.shapes
    is_own = shapes.embedding_params > 1.5 * shapes.vocabulary * shapes.hidden
    is_frozen = columns.is_lora & ~np.isnan(shapes.adapter_params)
    return np.asarray(is_own & ~is_frozen)


def first_bucket(columns: Columns) -> Times:
    """Bytes: the head, or else the layers' first MiB. Of layers none, where a cap is given."""
    each, table = local_gradients(columns)
    is_capped = np.array([case.bucket_bytes is not None for case in columns.cases])
    small = np.where(is_capped, 0.0, np.minimum(FIRST_BUCKET_BYTES, each * columns.shapes.layers))
    return np.where(is_untied(columns), table, small)


def buckets(columns: Columns) -> tuple[Times, Times]:
    """How many buckets do the layers' gradients fill, and how large is one?

    A parameter is never cut, so a bucket is no smaller than the layer's largest: of experts one
    matrix of all that a rank holds. What is in the first one is not in these. Source:
    probes/training/mlp.py, `ExpertLinear`; Megatron-core's GroupedMLP has them together, too.
    """
    each, _ = local_gradients(columns)
    shapes = columns.shapes
    experts = np.maximum(1.0, shapes.experts / columns.expert_parallel)
    largest = shapes.hidden * shapes.ffn_hidden * experts
    matrix = each * np.minimum(1.0, largest / shapes.held_layer(columns.expert_parallel))
    said = np.array([case.bucket_bytes for case in columns.cases], dtype=np.float64)
    cap = np.maximum(np.where(np.isnan(said), BUCKET_BYTES, said), matrix)
    total = each * shapes.layers
    number = np.maximum(1.0, np.ceil(total / cap))
    early = np.where(is_untied(columns), 0.0, first_bucket(columns))
    return number, (total - early) / number


def bucket_copies_s(columns: Columns) -> tuple[Times, Times]:
    """Seconds in which a bucket is filled from its gradients, and all are copied back: DDP does.

    Source: torch/csrc/distributed/c10d/reducer.cpp, mark_variable_ready_dense and
    finalize_bucket_dense, unless gradient_as_bucket_view is set, which is not the default.
    """
    each, table = local_gradients(columns)
    _, bucket = buckets(columns)
    is_copied = overlaps(columns) & ~columns.is_sharded & (columns.data_parallel > 1)
    moved_s = np.where(is_copied, 2.0, 0.0) / (HBM_EFFICIENCY * columns.memory_rate)
    late = table + loose_gradients(columns)
    return bucket * moved_s, (each * columns.shapes.layers + late) * moved_s
