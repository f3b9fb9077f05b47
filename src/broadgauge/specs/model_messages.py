"""Of what sizes are the messages that training a model sends? Pure arithmetic on its shape."""

from collections.abc import Iterable

from broadgauge.messages.model_shape import GptShape, ModelShape, adapter_parameters
from broadgauge.specs.lora import Lora
from broadgauge.specs.trained_model import TrainedModel

GRADIENT_TYPE_BYTES = 4
"""Parameters and gradients are kept in float32; buckets are cut by these bytes."""
FIRST_BUCKET_BYTES = 2**20
BUCKET_BYTES = 25 * 2**20
"""DDP's own choice. Source: torch 2.11, `_DEFAULT_FIRST_BUCKET_BYTES` and `bucket_cap_mb`."""


def gradient_elements(model: TrainedModel, lora: Lora | None = None) -> list[int]:
    """How many elements has each parameter that is trained, in the order in which gradients become
    ready?

    That is from the loss backwards; of a linear layer the bias comes first, of a norm the weight,
    of an adapter the matrix nearer the loss; the embedding last, though the head may share it. DDP
    orders its buckets by it after the first step. tests/probes/test_model_messages.py compares with
    what DDP did.
    """
    shape = model.shape
    if lora is not None:
        return _adapter_elements(shape, lora) * shape.layers
    hidden = shape.hidden
    table = shape.vocabulary * hidden
    head = [] if shape.is_head_tied else [table]
    if isinstance(shape, GptShape):
        norm, positions = [hidden, hidden], shape.seq_len * hidden
        blocks = _block_elements(shape, norm, biases=True) * shape.layers
        return [*head, *norm, *blocks, positions, table]
    return [*head, hidden, *_block_elements(shape, [hidden]) * shape.layers, table]


def _block_elements(shape: ModelShape, norm: list[int], *, biases: bool = False) -> list[int]:
    """Of one block, its last layer first."""
    found: list[int] = []
    for name, (inputs, outputs) in reversed(shape.linears.items()):
        if name == "projection":
            found += norm  # the MLP's
        found += [outputs] * biases + [inputs * outputs]
    return [*found, *norm]


def _adapter_elements(shape: ModelShape, lora: Lora) -> list[int]:
    targets = lora.adapters(shape).targets
    sizes = [shape.linears[name] for name in reversed(shape.linears) if name in targets]
    return [side * lora.rank for inputs, outputs in sizes for side in (outputs, inputs)]


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


def fsdp_units(model: TrainedModel, lora: Lora | None = None) -> list[int]:
    """How many parameters has each unit of `fully_shard`: a block, and all that is in no block?

    Rows that the ranks do not divide evenly are padded when they are sent; that is left out.
    """
    shape = model.shape
    adapters = (
        0 if lora is None else adapter_parameters(shape, lora.adapters(shape).targets, lora.rank)
    )
    rest = shape.parameters - shape.layers * shape.block_parameters
    return [shape.block_parameters + adapters] * shape.layers + [rest]


def trained_elements(model: TrainedModel, lora: Lora | None = None) -> int:
    """How many parameters are trained: all, or the adapters'?"""
    return model.shape.parameters if lora is None else sum(gradient_elements(model, lora))
