"""What are the initial weights? The same for a seed however the model is spread over ranks.

Each parameter is drawn whole and every rank keeps its part, so never more than one parameter is
whole in memory. Initial weights N(0, 0.02), those into the residual stream over √(2·layers), norms
one, biases zero. Source: Radford et al. 2019 (GPT-2). Adapters: A normal, of variance 1/(3·inputs),
B zero. Source: Hu et al. 2022 (LoRA), section 4.1, and the variance of their code, microsoft/LoRA.
"""

import math
from typing import Any

import torch

from broadgauge.messages.model_shape import ModelShape
from broadgauge.probes.training.adapters import NARROWING, WIDENING
from broadgauge.probes.training.shards import set_whole

INITIAL_DEVIATION = 0.02


def draw_weights(model: Any, shape: ModelShape, seed: int, device: Any) -> None:
    generator = torch.Generator(device).manual_seed(seed)
    residual_scale = 1 / math.sqrt(2 * shape.layers)
    for name, parameter in model.named_parameters():
        set_whole(parameter, _drawn(name, parameter, residual_scale, generator))


def _drawn(name: str, parameter: Any, residual_scale: float, generator: Any) -> Any:
    whole = torch.empty(parameter.shape, dtype=parameter.dtype, device=generator.device)
    if name.endswith(("bias", WIDENING)):
        return whole.zero_()
    if whole.dim() == 1:
        return whole.fill_(1)
    deviation = INITIAL_DEVIATION
    if name.endswith(NARROWING):
        deviation = 1 / math.sqrt(3 * whole.shape[1])
    elif name.endswith(("projection.weight", "down.weight")):
        deviation *= residual_scale
    return whole.normal_(std=deviation, generator=generator)
