"""What is trained with LoRA, and what is frozen? See messages/adapters.py for what it is.

A is drawn and B is zero, so that training starts at the frozen model (weights.py).
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from broadgauge.messages.adapters import Adapters
from broadgauge.probes.training.shards import own_part

NARROWING, WIDENING = "narrowing.weight", "widening.weight"
"""Of A and B: the ends of their parameters' names."""
_WHOLE_NUMBERS = {4: torch.int32, 2: torch.int16}
"""By the bytes of a weight."""


class AdaptedLinear(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """W·x + alpha/rank · B·A·x; W keeps the name that it had in the block."""

    def __init__(self, linear: Any, adapters: Adapters) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        self.narrowing = nn.Linear(linear.in_features, adapters.rank, bias=False)
        self.widening = nn.Linear(adapters.rank, linear.out_features, bias=False)
        self.scale = adapters.alpha / adapters.rank
        self.dropout_ratio = adapters.dropout_ratio

    def forward(self, x: Any) -> Any:
        kept = functional.dropout(x, self.dropout_ratio) if self.dropout_ratio else x
        added = self.widening(self.narrowing(kept))
        return functional.linear(x, self.weight, self.bias) + self.scale * added


def adapt(model: Any, adapters: Adapters, dtype: Any) -> None:
    """Freezes all weights in the arithmetic's type, and puts adapters beside the targets' of each
    block, which are trained in float32. Of a model on the meta device, made under it."""
    model.to(dtype).requires_grad_(requires_grad=False)
    for layer in model.layers:
        for holder in list(layer.modules()):
            for name, linear in list(holder.named_children()):
                if name in adapters.targets and isinstance(linear, nn.Linear):
                    setattr(holder, name, AdaptedLinear(linear, adapters))


def frozen_checksum(model: Any) -> int:
    """The sum of all bits, read as whole numbers, of this rank's part of the frozen weights; 0
    where nothing is frozen. It differs as soon as one weight does."""
    frozen = [own_part(p) for p in model.parameters() if not p.requires_grad]
    sums = [
        part.view(_WHOLE_NUMBERS[part.element_size()]).sum(dtype=torch.int64).cpu()
        for part in frozen
    ]
    return int(torch.stack(sums).sum().item()) if sums else 0
