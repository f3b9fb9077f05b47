"""What is trained with LoRA, and what is frozen?

Beside a linear layer W, frozen, two matrices B·A with a few rows between are trained. Source: Hu et
al. 2022 (LoRA, arXiv 2106.09685), section 4.1: A is drawn, B is zero, so that training starts at
the frozen model.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from broadgauge.messages.model_shape import Adapters
from broadgauge.probes.training.shards import own_part

_WHOLE = {4: torch.int32, 2: torch.int16}
"""By the bytes of a weight."""
NARROWING, WIDENING = "narrowing.weight", "widening.weight"
"""Of A and B: the ends of their parameters' names."""


class AdaptedLinear(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """W·x + alpha/rank · B·A·x; W keeps the name that it had in the block."""

    def __init__(self, linear: Any, adapters: Adapters) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        device = linear.weight.device
        self.narrowing = nn.Linear(linear.in_features, adapters.rank, bias=False, device=device)
        self.widening = nn.Linear(adapters.rank, linear.out_features, bias=False, device=device)
        self.scale = adapters.alpha / adapters.rank
        self.dropout_ratio = adapters.dropout_ratio

    def forward(self, x: Any) -> Any:
        kept = functional.dropout(x, self.dropout_ratio) if self.dropout_ratio else x
        added = self.widening(self.narrowing(kept))
        return functional.linear(x, self.weight, self.bias) + self.scale * added


def adapt(model: Any, adapters: Adapters, dtype: Any) -> None:
    """Freezes all weights in the arithmetic's type, and puts adapters beside the targets' of each
    block, which are trained in float32."""
    model.to(dtype).requires_grad_(requires_grad=False)
    for layer in model.layers:
        for holder in (layer, layer.attention):
            for name in adapters.targets:
                linear = getattr(holder, name, None)
                if linear is not None:
                    setattr(holder, name, AdaptedLinear(linear, adapters))


def frozen_checksum(model: Any) -> int:
    """The sum of all bits, read as whole numbers, of this rank's part of the frozen weights; 0
    where nothing is frozen. It differs as soon as one weight does."""
    frozen = [own_part(p) for p in model.parameters() if not p.requires_grad]
    sums = [part.view(_WHOLE[part.element_size()]).sum(dtype=torch.int64) for part in frozen]
    return int(torch.stack(sums).sum().item()) if sums else 0
