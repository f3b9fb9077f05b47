"""Is the reference trainer as fast as a plain loop, eager and under torch.compile?

    python scripts/trainer_bench.py                            # one GPU: GPT-2 large, eager
    python scripts/trainer_bench.py --compile --model llama    # 8 layers of Llama-3.1-8B's shape
    python scripts/trainer_bench.py --compile --model moe      # 3 layers of gpt-oss-20b's shape
    python scripts/trainer_bench.py --ranks 2 --strategy fsdp --model llama
    python scripts/trainer_bench.py --toy                      # a small model, on CPUs too
    python scripts/trainer_bench.py --model llama --compile --titan FOLDER

All arms are timed in turns, in one process a rank: the trainer as `broadgauge run` has it, with its
data, its clock and its hooks, and the loops of plain_loops.py, on a batch that is ready. With
`--compile` the trainer's `compile: true` stands against torch.compile of the whole model and
against that of each block. On one rank all arms train the same weights with one optimizer; between
ranks each has its own (`--apart`: built anew for each turn, where two do not fit in memory).
`--titan`: torchtitan's model, too, 0.2.2 installed in FOLDER (`pip install --target`). A ratio is
tokens/s of the trainer over those of the loop, of one round.
"""

import argparse
import gc
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import torch
import torch.distributed as dist
from plain_loops import Compiled, Ours, Setting, Steps, Titan, plain_loop
from pydantic import TypeAdapter

from broadgauge.catalog.trained_models import trained_model
from broadgauge.messages.tasks import StandardLibraryText, TrainTask
from broadgauge.probes.calibration.steps import ALONE
from broadgauge.probes.devices import CpuDevice, CudaDevice, Device
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.training.sources import read_text
from broadgauge.probes.training.trainer import Trainer
from broadgauge.specs.workloads.trained_model import TrainedModel

TRAINER = "trainer"
BFLOAT16_FLOPS = 989e12
"""A second, dense, of an H100 SXM and an H200. Source: NVIDIA H100 and H200 data sheets."""
WARM_UP_STEPS = 3
FULL: dict[str, tuple[dict[str, Any], int]] = {
    "gpt": (trained_model("gpt2-large"), 16),
    "llama": (trained_model("llama-3.1-8b") | {"layers": 8, "seq_len": 2048}, 2),
    "moe": (trained_model("gpt-oss-20b") | {"layers": 3, "seq_len": 2048}, 2),
}
"""`model:` as in an experiment, and sequences a rank and step."""
_TOY = {"layers": 2, "hidden": 128, "heads": 4, "vocabulary": 512, "seq_len": 64}
_TOY_LLAMA = _TOY | {"kind": "llama", "kv_heads": 2, "ffn_hidden": 384}
_TOY_EXPERTS = {"ffn_hidden": 128, "bias": "all", "experts": 8, "experts_per_token": 2}
TOY = {"gpt": (_TOY, 4), "llama": (_TOY_LLAMA, 4), "moe": (_TOY_LLAMA | _TOY_EXPERTS, 4)}


@dataclass
class Arm:
    """One of what is compared, and what came of it."""

    build: Callable[[], Steps]
    steps: Steps | None = None
    first_step_s: float | None = None
    tokens_per_s: list[float] = field(default_factory=list)
    peak_memory_bytes: int = 0


def main() -> None:
    asked = _asked()
    if asked.ranks > 1 and "RANK" not in os.environ:
        launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
        os.execv(sys.executable, [sys.executable, *launcher, str(asked.ranks), *sys.argv])
    if asked.titan is not None:
        sys.path.insert(1, asked.titan)
    identity = RankIdentity.from_environment(os.environ) if asked.ranks > 1 else ALONE
    is_gpu = torch.cuda.is_available() and not asked.cpu
    device: Device = CudaDevice(identity.local_rank) if is_gpu else CpuDevice()
    if asked.ranks > 1:
        dist.init_process_group("nccl" if is_gpu else "gloo")
    task = _task(asked, is_gpu)
    arms = _arms(task, identity, device, asked)
    _measure(arms, task, device, asked)
    if identity.rank == 0:
        found = _told(arms, task, asked, torch.cuda.get_device_name() if is_gpu else "CPU")
        if asked.json:
            Path(asked.json).write_text(json.dumps(found, indent=1) + "\n")
    if asked.ranks > 1:
        dist.destroy_process_group()


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--model", choices=tuple(FULL), default="gpt")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--ranks", type=int, default=1, help="processes on this machine")
    parser.add_argument("--strategy", choices=("ddp", "fsdp"), default="ddp", help="of ranks")
    parser.add_argument("--apart", action="store_true", help="one arm in memory at a time")
    parser.add_argument("--titan", metavar="FOLDER", help="where torchtitan 0.2.2 is installed")
    parser.add_argument("--layers", type=int, help="fewer of them")
    parser.add_argument("--batch", type=int, help="sequences a rank and step")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), help="bfloat16 on a GPU")
    parser.add_argument("--steps", type=int, default=10, help="of a turn")
    parser.add_argument("--rounds", type=int, default=6, help="turns of each arm")
    parser.add_argument("--limit-s", type=float, default=120.0, help="begin no round after it")
    parser.add_argument("--toy", action="store_true", help="small models, as on CPUs")
    parser.add_argument("--cpu", action="store_true", help="even where there is a GPU")
    parser.add_argument("--json", help="a file for the figures")
    asked = parser.parse_args()
    if asked.strategy == "fsdp" and asked.ranks == 1:
        parser.error("--strategy fsdp is for --ranks 2 and more")
    if asked.apart and (asked.compile or asked.ranks == 1):
        parser.error("--apart is for eager arms of --ranks 2 and more")
    return asked


def _task(asked: argparse.Namespace, is_gpu: bool) -> TrainTask:  # noqa: FBT001
    model, batch = (FULL if is_gpu and not asked.toy else TOY)[asked.model]
    if asked.layers:
        model = model | {"layers": asked.layers}
    return TrainTask(
        strategy=asked.strategy,
        model=TypeAdapter(TrainedModel).validate_python(model).shape,
        batch_per_rank=asked.batch or batch,
        accumulation=1,
        dtype=asked.dtype or ("bfloat16" if is_gpu else "float32"),
        gradient_dtype="float32",
        reshard_after_forward=True,
        bucket_cap_bytes=None,
        learning_rate=1e-4,
        steps=asked.steps,
        warm_up_steps=WARM_UP_STEPS,
        block_steps=asked.steps,
        communication_off=False,
        text=StandardLibraryText(),
        compile=asked.compile,
    )


def _arms(
    task: TrainTask, identity: RankIdentity, device: Device, asked: argparse.Namespace
) -> dict[str, Arm]:
    text = read_text(task.text)
    make_trainer = partial(Trainer, task, 0, identity, device, text)
    shared = make_trainer() if identity.world_size == 1 else None
    setting = Setting(task=task, world_size=identity.world_size, device=device, trainer=shared)

    def trainer_steps() -> Steps:
        trainer = shared or make_trainer()
        return lambda steps: trainer.timed_steps(range(steps))

    ways: tuple[Compiled, ...] = ("eager",)
    if task.compile:  # of FSDP's model as a whole nothing would be one graph
        ways = ("blocks",) if task.strategy == "fsdp" else ("whole", "blocks")
    arms = {TRAINER: Arm(trainer_steps)}
    for way in ways:
        arms[f"plain, {way}"] = Arm(partial(plain_loop, setting, way, Ours))
    if asked.titan is not None:
        arms[f"torchtitan, {ways[-1]}"] = Arm(partial(plain_loop, setting, ways[-1], Titan))
    return arms


def _measure(
    arms: dict[str, Arm], task: TrainTask, device: Device, asked: argparse.Namespace
) -> None:
    """Rounds of one turn an arm, each begun by the next one."""
    began_s = time.perf_counter()
    tokens = asked.ranks * task.batch_per_rank * task.model.seq_len * asked.steps
    if not asked.apart:
        for arm in arms.values():
            _prepare(arm)
    names = list(arms)
    for number in range(asked.rounds):
        if number and _longest_s(time.perf_counter() - began_s, device) > asked.limit_s:
            break
        for name in names[number % len(names) :] + names[: number % len(names)]:
            _take_turn(arms[name], tokens, device, asked)


def _take_turn(arm: Arm, tokens: int, device: Device, asked: argparse.Namespace) -> None:
    device.reset_peak_memory()
    if asked.apart:
        _prepare(arm)
    assert arm.steps is not None
    arm.steps(1)  # what the arm before left in caches is its own again
    _longest_s(0.0, device)
    arm.tokens_per_s.append(tokens / _seconds_of(arm.steps, asked.steps))
    arm.peak_memory_bytes = max(arm.peak_memory_bytes, device.peak_memory_bytes())
    if asked.apart:
        arm.steps = None
        gc.collect()
        torch.cuda.empty_cache()


def _prepare(arm: Arm) -> None:
    arm.steps = arm.build()
    first_s = _seconds_of(arm.steps, 1)
    arm.first_step_s = first_s if arm.first_step_s is None else arm.first_step_s
    arm.steps(WARM_UP_STEPS)


def _seconds_of(run: Steps, steps: int) -> float:
    began_s = time.perf_counter()
    run(steps)
    return time.perf_counter() - began_s


def _longest_s(seconds: float, device: Device) -> float:
    """Of all ranks, which leave this together."""
    if not dist.is_initialized():
        return seconds
    longest = torch.tensor([seconds], device=device.torch_device)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    return float(longest.item())


def _told(
    arms: dict[str, Arm], task: TrainTask, asked: argparse.Namespace, where: str
) -> dict[str, Any]:
    shape, ours = task.model, arms[TRAINER].tokens_per_s
    print(
        f"\n{shape.kind} {shape.layers} × {shape.hidden} × {shape.heads}, "
        f"{shape.parameters / 1e6:,.0f}M parameters, {task.batch_per_rank} × {shape.seq_len} tokens"
        f" a rank, {task.dtype}, {'compiled' if task.compile else 'eager'}, {asked.ranks} × {where}"
        f"{f', {task.strategy}' if asked.ranks > 1 else ''}, torch {torch.__version__}"
    )
    found: dict[str, Any] = {}
    for name, arm in arms.items():
        rates = arm.tokens_per_s
        mfu_ratio = statistics.median(rates) * shape.flops_per_token / asked.ranks / BFLOAT16_FLOPS
        ratios = [mine / theirs for mine, theirs in zip(ours, rates, strict=True)]
        found[name] = {
            "tokens_per_s": rates,
            "mfu_ratio": None if where == "CPU" else mfu_ratio,
            "peak_memory_bytes": arm.peak_memory_bytes,
            "first_step_s": arm.first_step_s,
            "trainer_over_it": {"mean": _mean(ratios), "of_rounds": ratios},
        }
        print(
            f"  {name:19} {statistics.median(rates):11,.0f} tokens/s ({min(rates):,.0f} to "
            f"{max(rates):,.0f}), "
            + ("" if where == "CPU" else f"MFU {mfu_ratio:.1%}, ")
            + f"peak {arm.peak_memory_bytes / 2**30:.1f} GiB, first step {arm.first_step_s:.1f} s"
            + (
                ""
                if name == TRAINER
                else f"; trainer / it {_mean(ratios):.4f} ({min(ratios):.4f} to "
                f"{max(ratios):.4f}, {len(ratios)} rounds)"
            )
        )
    case = {
        "model": asked.model,
        "strategy": asked.strategy,
        "batch_per_rank": task.batch_per_rank,
        "layers": shape.layers,
        "parameters": shape.parameters,
    }
    return {"device": where, "ranks": asked.ranks, "compile": task.compile, **case, "arms": found}


def _mean(ratios: list[float]) -> float:
    """The geometric one: of ratios and of what they are the inverse of alike."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


if __name__ == "__main__":
    main()
