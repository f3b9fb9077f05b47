"""A rank without torch: says at once what a real one measures, and lingers where it is told to.

`LINGER_IN=measure` keeps the second trial of a run in that phase until something ends it, on all
ranks or on `LINGER_RANK`, for `LINGER_S` seconds or while there is a file `LINGER_HOLD`. What is
measured is made up and the same in every trial.
"""

# ruff: noqa: T201

import faulthandler
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.rank_channel import next_command, say, say_hello, wait_at

RANK, WORLD_SIZE = os.environ["RANK"], int(os.environ["WORLD_SIZE"])
LINGER_IN = os.environ.get("LINGER_IN")
LINGER_S = float(os.environ.get("LINGER_S", "inf"))
LINGER_HOLD = os.environ.get("LINGER_HOLD", "/")
LINGER_RANK = os.environ.get("LINGER_RANK", RANK)
SECOND_TRIAL = "b0.l0.t1"
told: list[str] = []
"""Trials."""


def begin_phase(phase: str) -> None:
    say(type="phase", trial_id=told[-1], phase=phase, detail="scripted")
    if (phase, RANK, told[-1]) == (LINGER_IN, LINGER_RANK, SECOND_TRIAL):
        print(f"lingers in {phase}", flush=True)
        end_s = time.monotonic() + LINGER_S
        while time.monotonic() < end_s and Path(LINGER_HOLD).exists():
            time.sleep(min(0.1, LINGER_S))
        print("goes on" + "." * 10_000, flush=True)


def mark(label: str) -> None:
    wait_at(told[-1], label)


def say_block(label: str, **figures: Any) -> None:
    mark(f"{label}:begin")
    mark(f"{label}:end")
    say(type="block", trial_id=told[-1], label=label, **figures)


def train(train: dict[str, Any]) -> None:
    steps = train["block_steps"]
    for is_on in (True, False) if WORLD_SIZE > 1 else (True,):
        say_block(
            f"{'on' if is_on else 'off'}.0",
            kind="steps",
            mode="timed" if is_on else "communication_off",
            seconds=[0.02 if is_on else 0.01] * steps,
            losses=[5.0] * steps,
        )
    summary: dict[str, Any] = dict.fromkeys(
        ("parameters", "tokens_per_step", "sequences_per_step", "gradient_bytes"), 1000
    )
    summary |= {"flops_per_step": 1e6, "peak_memory_bytes": 1_000_000, "parameter_checksum": 1.5}
    say(type="block", kind="train_summary", trial_id=told[-1], data="scripted", **summary)


def collectives(collectives: dict[str, Any]) -> None:
    for size in collectives["sizes_bytes"]:
        say_block(
            f"all_reduce/float32/{size}",
            kind="collective",
            op="all_reduce",
            dtype="float32",
            size_bytes=size,
            seconds=[1e-4 + size / 1e9] * 3,
            is_correct=True,
        )


def run_trial(command: dict[str, Any]) -> None:
    told.append(command["trial_id"])
    workload = command["task"]
    for phase in ("rendezvous", "warm_up", "measure"):
        begin_phase(phase)
    {"train": train, "collectives": collectives}[workload["kind"]](workload)
    begin_phase("teardown")
    mark("teardown")
    say(type="done", trial_id=told[-1])


def main() -> None:
    faulthandler.register(signal.SIGUSR1)
    say_hello(int(RANK), "scripted")
    while (command := next_command())["type"] != "end":
        run_trial(command)


main()
