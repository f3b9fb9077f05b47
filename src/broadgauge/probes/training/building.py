"""Which model does a task mean? On the meta device, without memory."""

from typing import Any

import torch

from broadgauge.messages.model_shape import GptShape, LlamaShape
from broadgauge.messages.tasks import TrainTask
from broadgauge.messages.vocabulary import assert_never
from broadgauge.probes.training.adapters import adapt
from broadgauge.probes.training.llama import Llama
from broadgauge.probes.training.model import Gpt
from broadgauge.probes.training.types import torch_type


def build_model(task: TrainTask) -> Any:
    """With its adapters, and told what its blocks keep for their backward pass."""
    with torch.device("meta"):
        match task.model:
            case GptShape():
                model: Any = Gpt(task.model)
            case LlamaShape():
                model = Llama(task.model)
            case unknown:
                assert_never(unknown)
        for layer in model.layers:
            layer.checkpointing = task.activation_checkpointing
        if task.adapters is not None:
            adapt(model, task.adapters, torch_type(task.dtype))
    return model
