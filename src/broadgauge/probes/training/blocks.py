"""What does a block keep for its backward pass, and which parts of a model are compiled?"""

import functools
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

from broadgauge.messages.vocabulary import ActivationCheckpointing

_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")
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


class Block(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """A transformer's block, whose `compute` is its forward pass.

    - `none` keeps whatever autograd wants.
    - `full` keeps the block's input and computes all of it again. Source: Chen et al. 2016 (arXiv
      1604.06174).
    - `selective` keeps the results of matrix products and of attention's core too, which take most
      of the time, and computes norms, activations, rotations, sums and casts again. Source: torch
      2.11, torch.utils.checkpoint, `create_selective_checkpoint_contexts`; Korthikanti et al. 2022
      (arXiv 2205.05198), section 5, for the idea, though they recompute attention's core.
    """

    checkpointing: ActivationCheckpointing = "none"

    def compute(self, *inputs: Any) -> Any:
        raise NotImplementedError

    def forward(self, *inputs: Any) -> Any:
        if self.checkpointing == "none":
            return self.compute(*inputs)
        if self.checkpointing == "full":
            return checkpoint(self.compute, *inputs, use_reentrant=False)
        return checkpoint(
            self.compute, *inputs, use_reentrant=False, context_fn=_keeping_what_takes_long
        )


def _keep(context: Any, operation: Any, *arguments: Any, **options: Any) -> Any:
    del context, arguments, options
    is_kept = operation in _KEPT
    return CheckpointPolicy.MUST_SAVE if is_kept else CheckpointPolicy.PREFER_RECOMPUTE


_keeping_what_takes_long = functools.partial(create_selective_checkpoint_contexts, _keep)


def compile_parts(model: Any) -> None:
    """Compiles each block, and the head with its loss.

    In parts, so that what a strategy does around a block goes on between them: all gradients of one
    graph are ready at its end, and nothing would be left to hide their reduction behind. Blocks are
    alike, so that one of them is compiled; one rank alone does the same, so that ranks are compared
    with what they do. `forward` is compiled and not the block: hooks stay outside. Source:
    torchtitan, `apply_compile`, for the unit.
    """
    for layer in model.layers:
        layer.forward = torch.compile(layer.forward, fullgraph=True)
    model.loss = torch.compile(model.loss, fullgraph=True)
