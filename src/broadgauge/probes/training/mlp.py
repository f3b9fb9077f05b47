"""What is the MLP of a Llama's block? One with a gate, or in a mixture of experts several, and a
router that has each token pass a few.

The router's k highest scores choose the experts, and softmax over these k weighs what they give.
Rows are put in the order of their experts, and no row is dropped. One grouped product does the work
of all experts in bfloat16 on Hopper and Blackwell; elsewhere torch makes one product an expert, and
the host waits for the device to say how many rows each has. Every rank has all experts: there is no
expert parallelism, and no loss that balances them. Source: Jiang et al. 2024 (Mixtral, arXiv
2401.04088), section 2.1; OpenAI 2025 (gpt-oss, arXiv 2508.10925), section 2.2; torch 2.11,
`torch.nn.functional.grouped_mm` and aten/src/ATen/native/cuda/GroupedBlas.cpp.
Shapes: B sequences, T tokens, H hidden, F an MLP's width, E experts, K of them a token, R = B·T·K
rows.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from broadgauge.messages.model_shape import Activation, Linear, LlamaShape
from broadgauge.probes.trial import RefusedError


class GatedMlp(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.gate = linear_of(shape, "gate")
        self.up = linear_of(shape, "up")
        self.down = linear_of(shape, "down")
        self.activation = shape.activation

    def forward(self, x_bth: Any) -> Any:
        return self.down(opened(self.gate(x_bth), self.activation) * self.up(x_bth))


class Experts(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        refuse_missing_grouped_products()
        self.chosen = shape.experts_per_token
        self.router = nn.Linear(shape.hidden, shape.experts, bias=shape.router_has_bias)
        self.gate = ExpertLinear(shape, "gate")
        self.up = ExpertLinear(shape, "up")
        self.down = ExpertLinear(shape, "down")
        self.activation = shape.activation

    def forward(self, x_bth: Any) -> Any:
        x_th = x_bth.flatten(0, 1)
        scores_tk, experts_tk = self.router(x_th).float().topk(self.chosen, sorted=False)
        experts_r, order_r = experts_tk.flatten().sort(stable=True)
        all_experts_e = torch.arange(self.router.out_features, device=x_th.device)
        ends_e = torch.searchsorted(experts_r, all_experts_e, right=True, out_int32=True)
        rows_rh = x_th.index_select(0, order_r // self.chosen).to(_arithmetic(x_th))
        opened_rf = opened(self.gate(rows_rh, experts_r, ends_e), self.activation)
        given_rh = self.down(opened_rf * self.up(rows_rh, experts_r, ends_e), experts_r, ends_e)
        given_tkh = given_rh.index_select(0, order_r.argsort()).unflatten(0, (-1, self.chosen))
        weights_t1k = scores_tk.softmax(1).unsqueeze(1).to(given_tkh.dtype)
        return torch.bmm(weights_t1k, given_tkh).to(x_bth.dtype).view_as(x_bth)


class ExpertLinear(nn.Module):  # type: ignore[misc]
    """The same linear layer of all experts. Their matrices lie one below the other, so that FSDP,
    which shares out rows, shares evenly whatever the number of experts."""

    def __init__(self, shape: LlamaShape, name: Linear) -> None:
        super().__init__()
        self.experts = shape.experts
        inputs, outputs = shape.mlp[name]
        self.weight = nn.Parameter(torch.empty(shape.experts * outputs, inputs))
        self.bias = None
        if shape.has_bias(name):
            self.bias = nn.Parameter(torch.empty(shape.experts * outputs))

    def forward(self, rows: Any, experts_r: Any, ends_e: Any) -> Any:
        """Rows [R, inputs] in the order of their experts, which of them each passes, and where each
        expert's end → [R, outputs]."""
        weights = self.weight.to(rows.dtype).unflatten(0, (self.experts, -1))
        given = functional.grouped_mm(rows, weights.transpose(1, 2), offs=ends_e)
        if self.bias is None:
            return given
        biases = self.bias.to(rows.dtype).unflatten(0, (self.experts, -1))
        return given + biases.index_select(0, experts_r)


def linear_of(shape: LlamaShape, name: Linear) -> Any:
    inputs, outputs = shape.linears[name]
    return nn.Linear(inputs, outputs, bias=shape.has_bias(name))


def opened(gate: Any, activation: Activation) -> Any:
    """How far a gate is open."""
    if activation == "gelu":
        return functional.gelu(gate, approximate="tanh")
    return functional.silu(gate)


def refuse_missing_grouped_products() -> None:
    """Raises RefusedError."""
    if not hasattr(functional, "grouped_mm"):
        raise RefusedError(
            f"a mixture of experts needs torch 2.10 or newer, and this is {torch.__version__}"
        )


def _arithmetic(x: Any) -> Any:
    """The type that products compute in here: autocast does not reach grouped ones."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
