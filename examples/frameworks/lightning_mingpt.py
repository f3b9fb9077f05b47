"""minGPT in PyTorch Lightning under DDP, as "The Impact of GPU Networking (Part 1)" trained it.

torchrun lightning_mingpt.py --layers 36 --hidden 1280 --heads 20

An epoch is a number of samples, shared among the ranks: 35,456 are 2,216 steps of 16 on one GPU and
1,108 on two, as there. The time of each epoch and the peak of memory are printed as in its tables.
The model is Broadgauge's own reference model, written again in one screen.
"""

import argparse
import json
import os
import resource
import sysconfig
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytorch_lightning as lightning
import torch
from pytorch_lightning.callbacks import Callback
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

LAUNCHED_S = psutil.Process().create_time()
VOCABULARY = 65
"""Characters of Shakespeare's works, as the article's models have them."""


class Attention(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(hidden, 3 * hidden)
        self.projection = nn.Linear(hidden, hidden)

    def forward(self, x_bth: torch.Tensor) -> torch.Tensor:
        batch, tokens, hidden = x_bth.shape
        parts = self.query_key_value(x_bth).view(batch, tokens, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.projection(mixed.transpose(1, 2).reshape(batch, tokens, hidden))


class Layer(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(hidden)
        self.attention = Attention(hidden, heads)
        self.mlp_norm = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)

    def forward(self, x_bth: torch.Tensor) -> torch.Tensor:
        x_bth = x_bth + self.attention(self.attention_norm(x_bth))
        return x_bth + self.down(functional.gelu(self.up(self.mlp_norm(x_bth))))


class MinGpt(nn.Module):
    """int64[B, T] tokens and those that follow → the mean cross entropy."""

    def __init__(
        self, layers: int, hidden: int, heads: int, seq_len: int, vocabulary: int = VOCABULARY
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(seq_len, hidden)
        self.layers = nn.ModuleList(Layer(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)
        for weight in (each for each in self.parameters() if each.ndim > 1):
            nn.init.normal_(weight, std=0.02)

    def forward(self, tokens_bt: torch.Tensor, next_bt: torch.Tensor) -> torch.Tensor:
        places_t = torch.arange(tokens_bt.shape[1], device=tokens_bt.device)
        x_bth = self.tokens(tokens_bt) + self.positions(places_t)
        for layer in self.layers:
            x_bth = layer(x_bth)
        logits_btv = self.head(self.norm(x_bth))
        return functional.cross_entropy(logits_btv.flatten(0, 1).float(), next_bt.flatten())


def as_characters(text: bytes, vocabulary: int) -> bytes:
    """Ids below the vocabulary, in the order of the bytes; the rarest share the last id."""
    if vocabulary >= 256:
        return text
    frequent = sorted(Counter(text).items(), key=lambda each: (-each[1], each[0]))
    kept = frequent if len(frequent) <= vocabulary else frequent[: vocabulary - 1]
    ids = {byte: number for number, byte in enumerate(sorted(byte for byte, _ in kept))}
    return text.translate(bytes(ids.get(byte, vocabulary - 1) for byte in range(256)))


class Windows(Dataset):
    """`samples` windows of a text, evenly spread over it."""

    def __init__(self, text: bytes, samples: int, seq_len: int) -> None:
        self.text = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
        self.samples, self.seq_len = samples, seq_len

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        begin = index * (len(self.text) - self.seq_len - 1) // self.samples
        window = self.text[begin : begin + self.seq_len + 1]
        return window[:-1], window[1:]


class Training(lightning.LightningModule):
    def __init__(self, model: MinGpt, learning_rate: float) -> None:
        super().__init__()
        self.model, self.learning_rate = model, learning_rate

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        return self.model(*batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        # One kernel for all parameters, as the reference trainer has it.
        return torch.optim.AdamW(self.parameters(), lr=self.learning_rate, fused=True)


class Lines(Callback):
    """A line of JSON a step and an epoch, and a row of the article's table."""

    def __init__(self) -> None:
        self._epoch_begin_s = self._begin_s = 0.0

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        if module.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        self._epoch_begin_s = self._begin_s = _awaited_s(module.device)

    def on_train_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, index: int
    ) -> None:
        now_s = _awaited_s(module.device)
        step_s, self._begin_s = now_s - self._begin_s, now_s
        tokens = batch[0].numel() * trainer.world_size
        _say(
            step=trainer.global_step,
            loss=outputs["loss"].item(),
            step_time_s=step_s,
            tokens_per_s=tokens / step_s,
        )

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        epoch_s = _awaited_s(module.device) - self._epoch_begin_s
        peak_bytes = _peak_bytes(module.device)
        mean_s, most_bytes = (
            float(trainer.strategy.reduce(torch.tensor(value, device=module.device), reduce_op=how))
            for value, how in ((epoch_s, "mean"), (float(peak_bytes), "max"))
        )
        epoch = trainer.current_epoch + 1
        _say(
            epoch=epoch,
            epoch_time_s=mean_s,
            peak_memory_bytes=int(most_bytes),
            steps=trainer.num_training_batches,
            **({"epoch2_time_s": mean_s} if epoch == 2 else {}),
        )
        if trainer.is_global_zero:
            ranks = trainer.world_size // trainer.num_nodes
            print(f"| epoch {epoch} | nodes {trainer.num_nodes} | GPUs per node {ranks} | ", end="")
            print(f"{mean_s:,.2f} s | {most_bytes / 2**20:,.2f} MiB |", flush=True)


def _awaited_s(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _peak_bytes(device: torch.device) -> int:
    """What tensors took at most in this epoch; of a process on CPUs, all that it ever took."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _say(**fields: Any) -> None:
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps(fields), flush=True)


def default_text() -> bytes:
    """The sources of Python's standard library, as far as 2 MiB go."""
    paths = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    return b"".join(path.read_bytes() for path in paths)[: 2 << 20]


def read_options() -> argparse.Namespace:
    """GPT-2 of 85 million parameters by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    for name, value in (("layers", 12), ("hidden", 768), ("heads", 12), ("seq_len", 256)):
        add(f"--{name}", type=int, default=value)
    add("--batch_per_rank", type=int, default=16)
    add("--samples", type=int, default=35_456, help="of an epoch, shared among the ranks")
    add("--epochs", type=int, default=2)
    add("--precision", default="bf16-mixed", help="Lightning's: bf16-mixed, bf16-true, 32-true")
    add("--learning_rate", type=float, default=3e-4)
    add("--vocabulary", type=int, default=VOCABULARY, help="characters; 256: bytes")
    add("--text", type=Path, help="a file, such as Shakespeare's works; else Python's sources")
    add("--seed", type=int, default=0)
    add("--cpu", action="store_true")
    return parser.parse_args()


def main() -> None:
    options = read_options()
    lightning.seed_everything(options.seed, verbose=False)
    text = default_text() if options.text is None else options.text.read_bytes()
    if len(text) < options.seq_len + 2:
        raise SystemExit(f"a text of {len(text)} bytes has no window of {options.seq_len}")
    named = "Python's standard library" if options.text is None else options.text.name
    if not 2 <= options.vocabulary <= 256:
        raise SystemExit(f"--vocabulary {options.vocabulary}: from 2 to 256 characters")
    shape = (options.layers, options.hidden, options.heads, options.seq_len)
    model = MinGpt(*shape, options.vocabulary)
    _say(data=named, text_bytes=len(text), parameters=sum(p.numel() for p in model.parameters()))
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    loader = DataLoader(
        Windows(as_characters(text, options.vocabulary), options.samples, options.seq_len),
        batch_size=options.batch_per_rank,
        shuffle=True,  # Lightning gives each rank its share
        drop_last=True,
    )
    trainer = lightning.Trainer(
        accelerator="cpu" if options.cpu else "gpu",
        strategy="ddp",
        devices=local,
        num_nodes=int(os.environ.get("WORLD_SIZE", "1")) // local,
        precision=options.precision,
        max_epochs=options.epochs,
        callbacks=[Lines()],
        **dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar"), False),
        enable_model_summary=False,
    )
    trainer.fit(Training(model, options.learning_rate), loader)
    _say(completion_time_s=time.time() - LAUNCHED_S)


if __name__ == "__main__":
    main()
