"""Of what sizes are the messages that training a model sends? Pure arithmetic on its shape."""

from collections.abc import Iterable

from broadgauge.messages.adapters import Adapters, sent_adapter_parameters
from broadgauge.messages.model_shape import GptShape, LlamaShape, ModelShape
from broadgauge.specs.workloads.trained_model import TrainedModel

GRADIENT_TYPE_BYTES = 4
"""Parameters and gradients are kept in float32; buckets are cut by these bytes."""
FIRST_BUCKET_BYTES = 2**20
BUCKET_BYTES = 25 * 2**20
"""DDP's own choice. Source: torch 2.11, `_DEFAULT_FIRST_BUCKET_BYTES` and `bucket_cap_mb`."""


def gradient_elements(model: TrainedModel, adapters: Adapters | None = None) -> list[int]:
    """How many elements has each trained parameter, in the order in which gradients become ready?

    That is from the loss backwards; of a linear layer the bias comes first, of a norm the weight,
    of an adapter B; the embedding last, though the head may share it. DDP orders its buckets by it
    after the first step. tests/probes/test_model_messages.py compares with what DDP did.
    """
    shape = model.shape
    if adapters is not None:
        return _adapter_elements(shape, adapters) * shape.layers
    table = shape.vocabulary * shape.hidden
    head = [] if shape.is_head_tied else [table]
    if isinstance(shape, GptShape):
        last_norm, positions = [shape.hidden] * 2, [shape.seq_len * shape.hidden]
        block = _gpt_block(shape)
    else:
        last_norm, positions = [shape.hidden], []
        block = _llama_block(shape)
    return [*head, *last_norm, *block * shape.layers, *positions, table]


def _adapter_elements(shape: ModelShape, adapters: Adapters) -> list[int]:
    """Of one block, its last linear layer first."""
    return [
        adapters.rank * width
        for name, (inputs, outputs) in reversed(shape.linears.items())
        if name in adapters.targets
        for width in (outputs, inputs)
    ]


def _gpt_block(shape: GptShape) -> list[int]:
    """Its last layer first; each has a bias."""
    found: list[int] = []
    for name, (inputs, outputs) in reversed(shape.linears.items()):
        if name == "projection":
            found += [shape.hidden] * 2  # the MLP's norm
        found += [outputs, inputs * outputs]
    return [*found, *[shape.hidden] * 2]


def _llama_block(shape: LlamaShape) -> list[int]:
    """Its last layer first."""
    behind = [shape.hidden] if shape.norms_per_layer == 4 else []
    of_heads = [shape.head_dim] * 2 if shape.norms_queries_and_keys else []
    found = [*behind]
    if shape.is_mixture:
        found += _experts(shape)
    for name, (inputs, outputs) in reversed(shape.linears.items()):
        if name == "projection":
            found += [shape.hidden, *behind]  # the norm before the MLP, and that behind attention
        found += [*([outputs] if shape.has_bias(name) else []), inputs * outputs]
        if name == "projection":
            found += of_heads
    return [*found, shape.hidden]


def _experts(shape: LlamaShape) -> list[int]:
    """Of a mixture: each linear layer of all experts, and the router."""
    found: list[int] = []
    for name, (inputs, outputs) in reversed(shape.mlp.items()):
        biases = [shape.experts * outputs] if shape.has_bias(name) else []
        found += [*biases, shape.experts * inputs * outputs]
    return [
        *found,
        *([shape.experts] if shape.router_has_bias else []),
        shape.experts * shape.hidden,
    ]


def ddp_buckets(elements: Iterable[int], cap_bytes: int | None) -> list[int]:
    """How many elements has each of DDP's buckets, in the order they are sent?

    A bucket is closed by the parameter with which it reaches its cap, so it may be larger. With no
    cap given the first one is small, so that communication begins early. Source: torch 2.11,
    torch/csrc/distributed/c10d/reducer.cpp, `compute_bucket_assignment_by_size`.
    """
    caps_bytes = [FIRST_BUCKET_BYTES, BUCKET_BYTES] if cap_bytes is None else [cap_bytes]
    buckets: list[int] = []
    filling = 0
    for number in elements:
        filling += number
        if filling * GRADIENT_TYPE_BYTES >= caps_bytes[min(len(buckets), len(caps_bytes) - 1)]:
            buckets.append(filling)
            filling = 0
    return [*buckets, filling] if filling else buckets


def fsdp_units(
    model: TrainedModel, adapters: Adapters | None = None, *, shards: int = 1
) -> list[int]:
    """How many parameters has each unit of `fully_shard`: a block, with adapters where it has them,
    and all that is in no block?

    Rows that the shards do not divide evenly are padded when they are sent: those of adapters,
    which are few, are counted, and of weights left out.
    """
    shape: ModelShape = model.shape
    rest = shape.parameters - shape.layers * shape.block_parameters
    block = shape.block_parameters
    if adapters is not None:
        block += sent_adapter_parameters(shape, adapters, shards)
    return [block] * shape.layers + [rest]
