"""What does one transformer layer cost the host that launches it, by framework?

Kernels are made so small that the host decides; 12 layers less 4 give one. Where the predictor's
priors of `launch_s` and RECOMPUTE_LAUNCH come from: docs/measurements.md. On a GPU:

    python scripts/layer_host_time.py plain plain-recomputed compiled megatron megatron-recomputed

Megatron needs megatron-core 0.5.0 on the path (its parts built from CUDA are stood in for by one
launch each, its fusions run under TorchScript, as before PyTorch 2.2); llama, llama-lora and
llama-lora-all need transformers 4.46 and peft 0.13. On CPUs the ratios of plain and llama are what
dispatching costs, in one thread's CPU time.
"""

import argparse
import json
import os
import statistics
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

IS_CUDA = torch.cuda.is_available()
DEVICE = "cuda" if IS_CUDA else "cpu"
WIDTH, HEADS, TOKENS = (256, 4, 64) if IS_CUDA else (64, 4, 8)
FEW, MANY = 4, 12
WARM_UP, ROUNDS = 8, 60
clock = time.perf_counter if IS_CUDA else time.thread_time
Run = Callable[[], Tensor]


class Block(nn.Module):
    """GPT-2's, in plain PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        parts = self.qkv(self.norms[0](x)).split(width, 2)
        q, k, v = (each.view(batch, tokens, HEADS, -1).transpose(1, 2) for each in parts)
        dropped = 0.1 if IS_CUDA else 0.0  # on CPUs it would leave the fused kernel
        mixed = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropped, is_causal=True)
        mixed = mixed.transpose(1, 2).contiguous().view(batch, tokens, width)
        x = x + functional.dropout(self.out(mixed), 0.1)
        fed = self.down(functional.gelu(self.up(self.norms[1](x))))
        return x + functional.dropout(fed, 0.1)


def plain(layers: int, *, recompute: bool = False, compiled: bool = False) -> Run:
    """On GPUs under autocast, as trainers run it."""
    made = [Block().to(DEVICE) for _ in range(layers)]
    blocks = [torch.compile(block) if compiled else block for block in made]

    def run() -> Tensor:
        x = torch.randn(1, TOKENS, WIDTH, device=DEVICE, requires_grad=True)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=IS_CUDA):
            for block in blocks:
                x = checkpoint(block, x, use_reentrant=True) if recompute else block(x)
        return x

    return run


def llama(layers: int, *, adapted: tuple[str, ...] = ()) -> Run:
    """Transformers' layer, with PEFT's adapters on the modules of these names."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=128,
        hidden_size=WIDTH,
        intermediate_size=5 * WIDTH // 2,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        attn_implementation="sdpa",
    )
    model: Any = LlamaModel(config).to(DEVICE).train()
    if adapted:
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(r=8, lora_alpha=16, lora_dropout=0.05, target_modules=list(adapted))
        model = get_peft_model(model, config)

    def run() -> Tensor:
        x = torch.randn(1, TOKENS, WIDTH, device=DEVICE, requires_grad=True)
        found: Tensor = model(inputs_embeds=x, use_cache=False).last_hidden_state
        return found

    return run


def megatron(layers: int, *, recompute: bool = False) -> Run:
    """Megatron-core's layer in fp16, without Transformer Engine. CUDA only."""
    _prepare_megatron()
    from megatron.core import tensor_parallel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer.spec_utils import build_module
    from megatron.core.transformer.transformer_config import TransformerConfig

    config = TransformerConfig(
        num_layers=layers,
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        fp16=True,
        params_dtype=torch.float16,
        bias_activation_fusion=True,
        bias_dropout_fusion=True,
        masked_softmax_fusion=True,
    )
    spec = get_gpt_layer_local_spec()
    spec.submodules.input_layernorm = spec.submodules.pre_mlp_layernorm = Norm
    blocks = [
        build_module(spec, config=config, layer_number=index + 1).to(DEVICE).half()
        for index in range(layers)
    ]
    mask = torch.ones(1, 1, TOKENS, TOKENS, dtype=torch.bool, device=DEVICE).triu(1)

    def passing(block: Callable[..., tuple[Tensor, ...]]) -> Callable[[Tensor], Tensor]:
        return lambda x: block(x, mask)[0]

    def run() -> Tensor:
        x = torch.randn(TOKENS, 1, WIDTH, device=DEVICE, dtype=torch.float16, requires_grad=True)
        for each in map(passing, blocks):
            x = tensor_parallel.checkpoint(each, False, x) if recompute else each(x)  # noqa: FBT003
        return x

    return run


class Norm(nn.LayerNorm):
    """One launch, as apex's fused norm."""

    def __init__(self, config: object, hidden_size: int, eps: float = 1e-5) -> None:  # noqa: ARG002
        super().__init__(hidden_size, eps=eps)


class _Absent(types.ModuleType):
    """Transformer Engine, whose layers are not used."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return None if name == "SplitAlongDim" else type(name, (nn.Module,), {})


def _prepare_megatron() -> None:
    """Once: one rank, and a stand-in for each part that is built from CUDA sources."""
    if torch.distributed.is_initialized():
        return
    import packaging.version

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"}
    torch.distributed.init_process_group("nccl", rank=0, world_size=1)
    softmax: Any = types.ModuleType("scaled_upper_triang_masked_softmax_cuda")
    softmax.forward = lambda x, _: torch.softmax(x, -1)
    softmax.backward = lambda g, y, _: torch._softmax_backward_data(g, y, -1, y.dtype)
    resources: Any = types.ModuleType("pkg_resources")
    resources.packaging = packaging
    sys.modules |= {softmax.__name__: softmax, "pkg_resources": resources}
    engine = "megatron.core.transformer.custom_layers.transformer_engine"
    sys.modules |= {
        name: _Absent(name) for name in (engine, "transformer_engine", "transformer_engine.pytorch")
    }
    from megatron.core import jit

    jit.jit_fuser = torch.jit.script  # before its users are imported
    from megatron.core import parallel_state
    from megatron.core.fusions.fused_softmax import FusedScaleMaskSoftmax
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed

    FusedScaleMaskSoftmax.is_kernel_available = lambda *_: True
    parallel_state.initialize_model_parallel()
    model_parallel_cuda_manual_seed(1)


ALL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
STYLES: dict[str, Callable[[int], Run]] = {
    "plain": plain,
    "plain-recomputed": lambda layers: plain(layers, recompute=True),
    "compiled": lambda layers: plain(layers, compiled=True),
    "megatron": megatron,
    "megatron-recomputed": lambda layers: megatron(layers, recompute=True),
    "llama": llama,
    "llama-lora": lambda layers: llama(layers, adapted=("q_proj", "v_proj")),
    "llama-lora-all": lambda layers: llama(layers, adapted=ALL),
}


def _moment() -> float:
    if IS_CUDA:
        torch.cuda.synchronize()
    return clock()


def layer_ms(build: Callable[[int], Run]) -> tuple[float, float]:
    """Forward and backward of one layer: first quartiles, for hosts that do other work, too."""
    runs = {layers: build(layers) for layers in (FEW, MANY)}
    seen: dict[int, list[tuple[float, float]]] = {layers: [] for layers in runs}
    for _ in range(WARM_UP + ROUNDS):
        for layers, run in runs.items():
            began = _moment()
            result = run()
            turned = _moment()
            result.float().sum().backward()
            seen[layers].append((turned - began, _moment() - turned))
    low = {
        layers: [statistics.quantiles(part, n=4)[0] for part in zip(*rows[WARM_UP:], strict=True)]
        for layers, rows in seen.items()
    }
    forward, backward = (1e3 * (low[MANY][i] - low[FEW][i]) / (MANY - FEW) for i in (0, 1))
    return forward, backward


def main() -> None:
    parser = argparse.ArgumentParser(description="What does a layer cost its host?")
    parser.add_argument("styles", nargs="+", choices=STYLES)
    parser.add_argument("--times", type=int, default=4, help="of each, in turn")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.autograd.set_multithreading_enabled(IS_CUDA)
    for _ in range(options.times):
        for style in options.styles:
            forward_ms, backward_ms = layer_ms(STYLES[style])
            row = {"style": style, "forward_ms": forward_ms, "backward_ms": backward_ms}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
