"""What would a user write? Plain training loops on the reference trainer's model, in plain PyTorch.

trainer_bench.py times them beside the trainer. The modules are the trainer's, or torchtitan's of
the same shape; the loop, what spreads it over ranks and how it is compiled are not the trainer's.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from broadgauge.messages.model_shape import LlamaShape
from broadgauge.messages.tasks import TrainTask
from broadgauge.probes.devices import Device
from broadgauge.probes.training.building import model_of
from broadgauge.probes.training.loss import mean_cross_entropy
from broadgauge.probes.training.trainer import Trainer
from broadgauge.probes.training.weights import draw_weights

Compiled = Literal["eager", "whole", "blocks"]
"""`whole`: torch.compile of the model. `blocks`: of each block and of the cross entropy, as
torchtitan does (source: torchtitan 0.2.2, `apply_compile`)."""
Steps = Callable[[int], object]
"""Takes so many steps, and returns when the device has done them."""
TITAN_NAMES = {
    "tokens.weight": "tok_embeddings.weight",
    "norm.weight": "norm.weight",
    "head.weight": "output.weight",
}
TITAN_LAYER_NAMES = {
    "attention_norm.weight": "attention_norm.weight",
    "attention.query.weight": "attention.wq.weight",
    "attention.key.weight": "attention.wk.weight",
    "attention.value.weight": "attention.wv.weight",
    "attention.projection.weight": "attention.wo.weight",
    "mlp_norm.weight": "ffn_norm.weight",
    "mlp.gate.weight": "feed_forward.w1.weight",
    "mlp.up.weight": "feed_forward.w3.weight",
    "mlp.down.weight": "feed_forward.w2.weight",
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all arms have in common."""

    task: TrainTask
    world_size: int
    device: Device
    trainer: Trainer | None
    """Whose weights and optimizer the loop trains, too, so that both fit in memory: one rank's.
    Between ranks each has its own, as hooks of DDP and FSDP stay with parameters."""


class Ours:
    """The trainer's module, which gives the loss."""

    def __init__(self, setting: Setting) -> None:
        with torch.device("meta"):
            self.module = model_of(setting.task.model)

    def renamed(self, name: str) -> str:
        return name

    def fill_buffers(self, device: Any) -> None:
        """It has none."""

    def blocks(self) -> Iterator[tuple[Any, str]]:
        return ((self.module.layers, str(number)) for number in range(len(self.module.layers)))

    def compile_loss(self) -> None:
        """The cross entropy alone: the head stays eager, as torchtitan's does."""
        module, cross_entropy = self.module, torch.compile(mean_cross_entropy)

        def loss(x_bth: Any, next_tokens_bt: Any) -> Any:
            return cross_entropy(module.logits(x_bth), next_tokens_bt)

        module.loss = loss

    def loss(self, model: Any, tokens_bt: Any, next_tokens_bt: Any) -> Any:
        return model(tokens_bt, next_tokens_bt)


class Titan:
    """torchtitan 0.2's Llama of the same shape, which gives logits."""

    def __init__(self, setting: Setting) -> None:
        from torchtitan.models.llama3.model.args import TransformerModelArgs
        from torchtitan.models.llama3.model.model import Transformer

        shape = setting.task.model
        if not isinstance(shape, LlamaShape):
            raise SystemExit("torchtitan has no model of this shape: --model llama")
        sizes = TransformerModelArgs(
            dim=shape.hidden,
            n_layers=shape.layers,
            n_heads=shape.heads,
            n_kv_heads=shape.kv_heads,
            vocab_size=shape.vocabulary,
            multiple_of=shape.ffn_hidden,  # 8/3 of `dim`, rounded up to it
            rope_theta=500_000,
            max_seq_len=shape.seq_len,
        )
        with torch.device("meta"):
            self.module = Transformer(sizes)
        self._cross_entropy = mean_cross_entropy

    def renamed(self, name: str) -> str:
        if name in TITAN_NAMES:
            return TITAN_NAMES[name]
        layers, number, rest = name.split(".", 2)
        return f"{layers}.{number}.{TITAN_LAYER_NAMES[rest]}"

    def fill_buffers(self, device: Any) -> None:
        with torch.device(device):
            self.module.freqs_cis = self.module._precompute_freqs_cis()

    def blocks(self) -> Iterator[tuple[Any, str]]:
        return ((self.module.layers, name) for name in list(self.module.layers))

    def compile_loss(self) -> None:
        self._cross_entropy = torch.compile(mean_cross_entropy)

    def loss(self, model: Any, tokens_bt: Any, next_tokens_bt: Any) -> Any:
        return self._cross_entropy(model(tokens_bt), next_tokens_bt)


def plain_loop(setting: Setting, compiled: Compiled, kind: type[Ours] | type[Titan]) -> Steps:
    """Its batch is ready on the device, the same in each step."""
    task, device = setting.task, setting.device
    built = kind(setting)
    if compiled == "blocks":
        for holder, name in built.blocks():
            holder.register_module(name, torch.compile(holder.get_submodule(name)))
        built.compile_loss()
    model = _spread(built, setting)
    if compiled == "whole":
        model = torch.compile(model)
    if setting.trainer is None:
        optimizer = torch.optim.AdamW(model.parameters(), lr=task.learning_rate, fused=True)
    else:
        optimizer = setting.trainer.optimizer
    size = (task.batch_per_rank, task.model.seq_len)
    batch = [torch.randint(256, size, device=device.torch_device) for _ in range(2)]

    # As a user has it; the trainer, in the same process, may have set it otherwise.
    @torch._dynamo.config.patch(optimize_ddp=True)
    def train(steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            with _arithmetic(setting):
                loss = built.loss(model, *batch)
            loss.backward()
            optimizer.step()
        device.synchronize()

    return train


def _spread(built: Ours | Titan, setting: Setting) -> Any:
    module, where = built.module, setting.device.torch_device
    if setting.trainer is not None:
        _share_weights(built, setting.trainer.model)
        built.fill_buffers(where)
        return module
    if setting.task.strategy == "fsdp":
        policy = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16 if setting.task.dtype == "bfloat16" else None,
            reduce_dtype=torch.float32,
        )
        for holder, name in built.blocks():
            fully_shard(holder.get_submodule(name), mp_policy=policy)
        fully_shard(module, mp_policy=policy)
    module.to_empty(device=where)
    built.fill_buffers(where)
    draw_weights(module, setting.task.model, 0, where)
    if setting.task.strategy == "fsdp" or setting.world_size == 1:
        return module
    return DistributedDataParallel(module, device_ids=[where] if where.type == "cuda" else None)


def _share_weights(built: Ours | Titan, trained: Any) -> None:
    """Gives the module the parameters of the trainer's, which they must fit."""
    own = {name.replace("_orig_mod.", ""): name for name, _ in built.module.named_parameters()}
    for name, parameter in trained.named_parameters():
        path = own.pop(built.renamed(name))
        holder, _, last = path.rpartition(".")
        assert built.module.get_parameter(path).shape == parameter.shape, path
        setattr(built.module.get_submodule(holder), last, parameter)
    assert not own, own


def _arithmetic(setting: Setting) -> AbstractContextManager[Any]:
    """FSDP has its own mixed precision."""
    if setting.task.strategy == "fsdp":
        return nullcontext()
    is_bfloat16 = setting.task.dtype == "bfloat16"
    kind = setting.device.torch_device.type
    return torch.autocast(kind, dtype=torch.bfloat16, enabled=is_bfloat16)
