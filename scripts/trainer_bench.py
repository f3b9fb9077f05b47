"""Is the reference trainer as fast as a plain loop under torch.compile?

    python scripts/trainer_bench.py                    # on a GPU: two models, some minutes
    python scripts/trainer_bench.py --toy              # on CPUs: the same at toy size
    python scripts/trainer_bench.py --model llama --json out.json
    python scripts/trainer_bench.py --whole            # the trainer's model as one graph, too

Both train the same weights with the same optimizer, in turns, in one process: the trainer as
`compile: true` has it, with its data, its clock and its hooks, and ten lines that a user would
write around `torch.compile(model)`, on tokens that are ready. The ratio is of tokens/s, trainer
over loop, of each pair of turns; the order within a pair alternates. It needs torch and this
checkout, nothing else.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import torch
from timing import mean_ratio, spread, wall_s_of

from broadgauge.messages.model_shape import GptShape, LlamaShape, ModelShape
from broadgauge.messages.tasks import StandardLibraryText, TrainTask
from broadgauge.probes.calibration.steps import ALONE
from broadgauge.probes.devices import CpuDevice, CudaDevice, Device
from broadgauge.probes.training import ddp
from broadgauge.probes.training.building import build_model
from broadgauge.probes.training.ddp import autocast
from broadgauge.probes.training.sources import read_text
from broadgauge.probes.training.trainer import Trainer

LEARNING_RATE = 1e-4
FULL: dict[str, tuple[ModelShape, int]] = {
    "gpt": (GptShape(layers=36, hidden=1280, heads=20, vocabulary=50_257, seq_len=1024), 16),
    "llama": (
        LlamaShape(
            layers=12,
            hidden=2048,
            heads=32,
            kv_heads=8,
            head_dim=64,
            ffn=8192,
            vocabulary=32_000,
            seq_len=2048,
            is_head_tied=False,
        ),
        4,
    ),
}
"""GPT-2 large, and blocks of Llama 3.2's 1B: the shape, and sequences a step."""
TOY: dict[str, tuple[ModelShape, int]] = {
    "gpt": (GptShape(layers=2, hidden=128, heads=4, vocabulary=512, seq_len=64), 4),
    "llama": (
        LlamaShape(
            layers=2,
            hidden=128,
            heads=4,
            kv_heads=2,
            head_dim=32,
            ffn=256,
            vocabulary=512,
            seq_len=64,
            is_head_tied=False,
        ),
        4,
    ),
}


@dataclass(frozen=True)
class Arms:
    """What is timed: each takes so many steps, and returns when the device has done them."""

    trainer: Callable[[int], object]
    loop: Callable[[int], object]


def main() -> None:
    asked = _asked()
    device: Device = CudaDevice(0) if torch.cuda.is_available() and not asked.cpu else CpuDevice()
    is_gpu = device.torch_device.type == "cuda"
    models = FULL if is_gpu and not asked.toy else TOY
    asked.dtype = asked.dtype or ("bfloat16" if is_gpu else "float32")
    where = torch.cuda.get_device_name() if is_gpu else "CPU"
    print(f"torch {torch.__version__}, {where}, {asked.dtype}, compile: {asked.compile}")
    found = {}
    for name in ("gpt", "llama") if asked.model == "both" else (asked.model,):
        shape, batch = models[name]
        found[name] = measure(shape, asked.batch or batch, device, asked)
    if asked.json:
        Path(asked.json).write_text(json.dumps({"device": where, "models": found}, indent=1))


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--model", choices=("gpt", "llama", "both"), default="both")
    parser.add_argument("--toy", action="store_true", help="small models")
    parser.add_argument("--cpu", action="store_true", help="even where there is a GPU")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), help="bfloat16 on a GPU")
    parser.add_argument("--batch", type=int, help="sequences a step")
    parser.add_argument("--steps", type=int, default=10, help="of a turn")
    parser.add_argument("--rounds", type=int, default=6, help="pairs of turns")
    parser.add_argument("--whole", action="store_true", help="the trainer's model as one graph")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--json", help="a file for the figures")
    return parser.parse_args()


def measure(
    shape: ModelShape, batch: int, device: Device, asked: argparse.Namespace
) -> dict[str, Any]:
    """Times both arms in turns, and prints what came of it."""
    text = read_text(StandardLibraryText())
    if asked.whole:  # what compiling in parts costs one rank: the same against the same loop
        ddp.compile_parts = _compile_whole
    trainer = Trainer(_task(shape, batch, asked), 0, ALONE, device, text)
    arms = Arms(
        trainer=lambda steps: trainer.timed_steps(range(steps)),
        loop=_plain_loop(trainer, batch, device, asked),
    )
    first_s = {name: _steps_s(getattr(arms, name), 1) for name in ("trainer", "loop")}
    for name in ("trainer", "loop"):
        getattr(arms, name)(3)
    tokens = batch * shape.seq_len * asked.steps
    rates: dict[str, list[float]] = {"trainer": [], "loop": []}
    for number in range(asked.rounds):
        for name in ("trainer", "loop") if number % 2 else ("loop", "trainer"):
            rates[name].append(tokens / _steps_s(getattr(arms, name), asked.steps))
    return _told(shape, batch, rates, first_s)


def _compile_whole(model: Any) -> None:
    model.forward = torch.compile(model.forward, fullgraph=True)


def _task(shape: ModelShape, batch: int, asked: argparse.Namespace) -> TrainTask:
    return TrainTask(
        strategy="ddp",
        model=shape,
        batch_per_rank=batch,
        accumulation=1,
        dtype=asked.dtype,
        gradient_dtype="float32",
        reshard_after_forward=True,
        bucket_cap_bytes=None,
        learning_rate=LEARNING_RATE,
        steps=asked.steps,
        warm_up_steps=3,
        block_steps=asked.steps,
        communication_off=False,
        text=StandardLibraryText(),
        compile=asked.compile,
    )


def _plain_loop(
    trainer: Trainer, batch: int, device: Device, asked: argparse.Namespace
) -> Callable[[int], object]:
    """What a user would write. It trains the trainer's weights, so that both fit in memory."""
    plain = build_model(trainer.task)
    for name, parameter in trainer.model.named_parameters():
        holder, _, last = name.rpartition(".")
        setattr(plain.get_submodule(holder), last, parameter)
    model = torch.compile(plain) if asked.compile else plain
    shape = (batch, trainer.task.model.seq_len)
    tokens, next_tokens = (
        torch.randint(trainer.task.model.vocabulary, shape, device=device.torch_device)
        for _ in range(2)
    )

    def train(steps: int) -> None:
        for _ in range(steps):
            trainer.optimizer.zero_grad()
            with autocast(device.torch_device.type, asked.dtype):
                loss = model(tokens, next_tokens)
            loss.backward()
            trainer.optimizer.step()
        device.synchronize()

    return train


def _steps_s(run: Callable[[int], object], steps: int) -> float:
    return wall_s_of(lambda: run(steps))


def _told(
    shape: ModelShape, batch: int, rates: dict[str, list[float]], first_s: dict[str, float]
) -> dict[str, Any]:
    ratios = [ours / theirs for ours, theirs in zip(rates["trainer"], rates["loop"], strict=True)]
    ratio, of_ratios = mean_ratio(ratios), spread(ratios)
    print(
        f"\n{shape.kind} {shape.layers} x {shape.hidden} x {shape.heads}, "
        f"{shape.parameters / 1e6:,.0f}M parameters, {batch} x {shape.seq_len} tokens a step"
    )
    for name, values in rates.items():
        of = spread(values)
        print(
            f"  {name:8} {of.middle:12,.0f} tokens/s "
            f"({of.low:,.0f} to {of.high:,.0f}); first step {first_s[name]:.1f} s"
        )
    print(
        f"  ratio    {ratio:.4f} ({of_ratios.low:.4f} to {of_ratios.high:.4f}, "
        f"{len(ratios)} pairs); 0.98 or more is wanted"
    )
    if torch.cuda.is_available():
        print(f"  peak     {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    return {"ratio": ratio, "ratios": ratios, "tokens_per_s": rates, "first_step_s": first_s}


if __name__ == "__main__":
    main()
