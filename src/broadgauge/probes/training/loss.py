"""How good were the predictions? The mean cross entropy, in nats.

Shapes: B sequences, T tokens, H hidden, V vocabulary.
"""

from typing import Any

from torch import nn
from torch.nn import functional


def mean_cross_entropy(logits_btv: Any, next_tokens_bt: Any) -> Any:
    """Of all tokens; in float32 whatever the blocks compute in: what autocast does too."""
    return functional.cross_entropy(logits_btv.flatten(0, 1).float(), next_tokens_bt.flatten())


class Predicting(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """The end of every model here: its last norm, and its head, which may be its embedding."""

    tokens: Any
    norm: Any
    head: Any
    """None: the embedding of tokens."""

    def logits(self, x_bth: Any) -> Any:
        table_vh = self.tokens.weight if self.head is None else self.head.weight
        return functional.linear(self.norm(x_bth), table_vh)

    def loss(self, x_bth: Any, next_tokens_bt: Any) -> Any:
        return mean_cross_entropy(self.logits(x_bth), next_tokens_bt)
