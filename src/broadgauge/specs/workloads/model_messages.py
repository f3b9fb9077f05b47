"""Of what sizes are the messages that training a model sends? Pure arithmetic on its shape."""

from collections.abc import Iterable

from broadgauge.specs.workloads.gpt import GptModel

GRADIENT_TYPE_BYTES = 4
"""Parameters and gradients are kept in float32; buckets are cut by these bytes."""
FIRST_BUCKET_BYTES = 2**20
BUCKET_BYTES = 25 * 2**20
"""DDP's own choice. Source: torch 2.11, `_DEFAULT_FIRST_BUCKET_BYTES` and `bucket_cap_mb`."""


def gradient_elements(model: GptModel) -> list[int]:
    """How many elements has each parameter, in the order in which gradients become ready?

    That is from the loss backwards; of a linear layer the bias comes first, of a norm the weight;
    the embedding last, though the head shares it. DDP orders its buckets by it after the first
    step. tests/probes/test_model_messages.py compares with what DDP did.
    """
    hidden = model.hidden
    norm = [hidden, hidden]

    def linear(inputs: int, outputs: int) -> list[int]:
        return [outputs, inputs * outputs]

    block = [
        *linear(4 * hidden, hidden),
        *linear(hidden, 4 * hidden),
        *norm,
        *linear(hidden, hidden),
        *linear(hidden, 3 * hidden),
        *norm,
    ]
    return [*norm, *block * model.layers, model.seq_len * hidden, model.vocabulary * hidden]


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


def fsdp_units(model: GptModel) -> list[int]:
    """How many parameters has each unit of `fully_shard`: a block, and all that is in no block?

    Rows that the ranks do not divide evenly are padded when they are sent; that is left out.
    """
    elements = gradient_elements(model)
    block = (sum(elements[2:-2])) // model.layers
    return [block] * model.layers + [sum(elements) - block * model.layers]
