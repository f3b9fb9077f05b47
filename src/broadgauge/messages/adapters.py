"""What is trained with LoRA in the place of a model's weights, and what does that cost?

Beside a linear layer W of a block, frozen, stands B·A with a few rows between. The layer gives
W·x + alpha/rank · B·A·x, and A and B alone are trained. Source: Hu et al. 2022 (LoRA, arXiv
2106.09685), section 4.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.messages.model_shape import TRAINED_FLOPS, Linear, ModelShape

FROZEN_FLOPS = 4.0
"""Of a frozen parameter and token: 2 forward and 2 for the gradient of its input; none for its own.
Source: Hu et al. 2022, section 4.2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """Of every block."""

    rank: int
    """Rows between A and B."""
    alpha: float
    targets: tuple[Linear, ...]
    """Linear layers that have one."""
    dropout_ratio: float = 0.0
    """Of what adapters are given, set to zero. Source: Hu et al. 2022, appendix D; and
    huggingface/peft, `lora_dropout`."""


def adapter_parameters(shape: ModelShape, targets: Sequence[Linear], rank: int) -> int:
    """Of one block: rank × (inputs + outputs) of each linear layer that has an adapter."""
    sizes = shape.linears
    return rank * sum(sum(sizes[target]) for target in targets)


def sent_adapter_parameters(shape: ModelShape, adapters: Adapters, shards: int) -> int:
    """Of one block, with what FSDP adds when it shares A's rows out: as many to each of the shards,
    the last ones empty. Source: torch 2.11, torch.distributed.fsdp, `_fsdp_param.py`,
    `padded_sharded_param_size`."""
    sizes = shape.linears
    rows = -(-adapters.rank // shards) * shards
    return sum(
        rows * inputs + adapters.rank * outputs
        for inputs, outputs in (sizes[target] for target in adapters.targets)
    )


def trained_parameters(shape: ModelShape, adapters: Adapters | None) -> int:
    """How many have gradients? None: all of them."""
    if adapters is None:
        return shape.parameters
    return shape.layers * adapter_parameters(shape, adapters.targets, adapters.rank)


def model_flops_per_token(shape: ModelShape, adapters: Adapters | None) -> float:
    """Model FLOPs a token, forward and backward, of what is trained and of what is frozen.

    Of the first block's frozen queries, keys and values nobody needs the gradient of the input;
    that is counted all the same.
    """
    if adapters is None:
        return shape.flops_per_token
    saved = (TRAINED_FLOPS - FROZEN_FLOPS) * shape.multiplying_parameters
    return shape.flops_per_token - saved + TRAINED_FLOPS * trained_parameters(shape, adapters)
