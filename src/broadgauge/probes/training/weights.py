"""What are the initial weights? The same for a seed however the model is spread over ranks.

Each parameter is drawn whole and every rank keeps its part, so never more than one parameter is
whole in memory. Initial weights N(0, 0.02), those into the residual stream over √(2·layers), norms
one, biases zero. Source: Radford et al. 2019 (GPT-2).
"""

import math
from typing import Any

import torch

from broadgauge.messages.model_shape import ModelShape
from broadgauge.probes.training.shards import set_whole

INITIAL_DEVIATION = 0.02


def draw_weights(model: Any, shape: ModelShape, seed: int, device: Any) -> None:
    generator = torch.Generator(device).manual_seed(seed)
    residual_scale = 1 / math.sqrt(2 * shape.layers)
    for name, parameter in model.named_parameters():
        is_residual = name.endswith(("projection.weight", "down.weight"))
        deviation = INITIAL_DEVIATION * (residual_scale if is_residual else 1.0)
        set_whole(parameter, _drawn(name, parameter, deviation, generator))


def _drawn(name: str, parameter: Any, deviation: float, generator: Any) -> Any:
    whole = torch.empty(parameter.shape, dtype=parameter.dtype, device=generator.device)
    if name.endswith("bias"):
        return whole.zero_()
    return whole.normal_(std=deviation, generator=generator) if whole.dim() > 1 else whole.fill_(1)
