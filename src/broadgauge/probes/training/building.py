"""Which model does a task mean, what is trained of it, and which of its parts are compiled?"""

from typing import Any

import torch

from broadgauge.messages.model_shape import GptShape, LlamaShape, ModelShape
from broadgauge.messages.tasks import TrainTask
from broadgauge.messages.vocabulary import assert_never
from broadgauge.probes.training.adapters import adapt
from broadgauge.probes.training.gpt import Gpt
from broadgauge.probes.training.llama import Llama
from broadgauge.probes.training.recomputing import recompute_blocks
from broadgauge.probes.training.types import torch_type


def build_model(task: TrainTask) -> Any:
    """On the meta device, without memory: no rank holds the whole of a model that is sharded. With
    its adapters, and told how it attends and what its blocks keep."""
    with torch.device("meta"):
        model = model_of(task.model)
        if task.adapters is not None:
            adapt(model, task.adapters, torch_type(task.dtype))
    for layer in model.layers:
        layer.attention.way = task.attention
    recompute_blocks(model, task.activation_checkpointing)
    if task.compile:
        compile_parts(model)
    return model


def model_of(shape: ModelShape) -> Any:
    """Its blocks are `layers`; called with tokens and those that follow, it gives the loss."""
    match shape:
        case GptShape():
            return Gpt(shape)
        case LlamaShape():
            return Llama(shape)
        case unknown:
            assert_never(unknown)


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
