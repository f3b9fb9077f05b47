"""What does a block keep for its backward pass, and what is computed again?

- `full` keeps the block's input and computes all of it again. Source: Chen et al. 2016 (arXiv
  1604.06174).
- `selective` keeps the results of matrix products and of attention's core too, which take most of
  the time, and computes norms, activations, rotations, sums and casts again. Source: torch 2.11,
  torch.utils.checkpoint, `create_selective_checkpoint_contexts`; Korthikanti et al. 2022 (arXiv
  2205.05198), section 5, for the idea, though they recompute attention's core.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

from broadgauge.messages.vocabulary import ActivationCheckpointing

_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "_grouped_mm")
_ATTENTIONS = (
    *("_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu"),
    *("_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention"),
    "_scaled_dot_product_attention_math",
)
_KEPT = frozenset(
    getattr(torch.ops.aten, name).default
    for name in (*_PRODUCTS, *_ATTENTIONS)
    if hasattr(torch.ops.aten, name)
)


def recompute_blocks(model: Any, how: ActivationCheckpointing) -> None:
    """Has each block keep as much as `how` says. Its `forward` is wrapped and not the block:
    hooks stay outside, and are not run again."""
    if how == "none":
        return
    for layer in model.layers:
        layer.forward = _keeping_less(layer.forward, how)


def _keeping_less(forward: Callable[..., Any], how: ActivationCheckpointing) -> Callable[..., Any]:
    options = {"context_fn": _keeping_what_takes_long} if how == "selective" else {}

    def forward_and_again(*inputs: Any) -> Any:
        return checkpoint(forward, *inputs, use_reentrant=False, **options)

    return forward_and_again


def _keep(context: Any, operation: Any, *arguments: Any, **options: Any) -> Any:
    del context, arguments, options
    is_kept = operation in _KEPT
    return CheckpointPolicy.MUST_SAVE if is_kept else CheckpointPolicy.PREFER_RECOMPUTE


_keeping_what_takes_long = functools.partial(create_selective_checkpoint_contexts, _keep)
