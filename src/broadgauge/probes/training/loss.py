"""How good were the predictions? The mean cross entropy, in nats."""

from typing import Any

from torch.nn import functional


def mean_cross_entropy(logits_btv: Any, next_tokens_bt: Any) -> Any:
    """Of all tokens; in float32 whatever the blocks compute in: what autocast does too."""
    return functional.cross_entropy(logits_btv.flatten(0, 1).float(), next_tokens_bt.flatten())
