"""A rank without torch: says at once what a real one measures, and lingers where it is told to.

`LINGER_IN=measure` keeps the second trial of a run in that phase until something ends it, on all
ranks or on `LINGER_RANK`, for `LINGER_S` seconds or while there is a file `LINGER_HOLD`. What is
measured is made up and the same in every trial. `SENDS=yes` lets each rank exchange a collective's
bytes with rank 0, over each NIC. `BREAKS=FILE`: rank 1 fails in its training with a line of its
own, and then, as the file is there, rank 0 for want of its peer.
"""

# ruff: noqa: T201

import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.e2e.scripted_links import Links
from tests.rank_channel import next_command, say, say_hello, wait_at

RANK, WORLD_SIZE = os.environ["RANK"], int(os.environ["WORLD_SIZE"])
LINGER_IN = os.environ.get("LINGER_IN")
LINGER_S = float(os.environ.get("LINGER_S", "inf"))
LINGER_HOLD = os.environ.get("LINGER_HOLD", "/")
LINGER_RANK = os.environ.get("LINGER_RANK", RANK)
SECOND_TRIAL = "b0.l0.t1"
SENDS, BREAKS = "SENDS" in os.environ, os.environ.get("BREAKS")
ITERATIONS = 3
SCRIPT_STEPS = 8
MUCH_BYTES = 400_000
"""What it writes when it goes on."""
told: list[str] = []
"""Trials."""


def begin_phase(phase: str) -> None:
    say(type="phase", trial_id=told[-1], phase=phase, detail="scripted")
    if (phase, RANK, told[-1]) == (LINGER_IN, LINGER_RANK, SECOND_TRIAL):
        print(f"lingers in {phase}", flush=True)
        end_s = time.monotonic() + LINGER_S
        while time.monotonic() < end_s and Path(LINGER_HOLD).exists():
            time.sleep(min(0.1, LINGER_S))
        print("goes on" + ("." * 99 + "\n") * (MUCH_BYTES // 100), flush=True)


def mark(label: str) -> None:
    wait_at(told[-1], label)


def say_block(label: str, work: Callable[[], None] = lambda: None, **figures: Any) -> None:
    mark(f"{label}:begin")
    work()
    mark(f"{label}:end")
    say(type="block", trial_id=told[-1], label=label, **figures)


def train(train: dict[str, Any]) -> None:
    steps = train["block_steps"]
    if BREAKS:
        fail(Path(BREAKS))
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


def user_script(command: dict[str, Any]) -> None:
    """A user's script, one process a node: each metric's samples without those to be skipped."""
    mark("command:begin")
    mark("command:end")
    samples = {
        metric["name"]: [0.02] * (SCRIPT_STEPS - metric["skip_first"])
        for metric in command["metrics"]
    }
    ranks = dict.fromkeys(samples, int(RANK))
    said = {"samples": samples, "ranks": ranks, "exit_code": 0}
    say(type="block", kind="command", trial_id=told[-1], **said)


def collectives(collectives: dict[str, Any]) -> None:
    links = Links(int(RANK), WORLD_SIZE) if SENDS else None
    for size in collectives["sizes_bytes"]:

        def exchange(size: int = size) -> None:
            for _ in range(ITERATIONS if links else 0):
                links.exchange(size)

        say_block(
            f"all_reduce/float32/{size}",
            exchange,
            kind="collective",
            op="all_reduce",
            dtype="float32",
            size_bytes=size,
            seconds=[1e-4 + size / 1e9] * ITERATIONS,
            is_correct=True,
        )
    if links:
        links.close()


def read_next_batch() -> None:
    """Where rank 1 fails."""
    raise KeyError("labels")


def fail(has_said_why: Path) -> None:
    """As a real worker says it; the peer's words explain nothing."""
    if RANK == "1":
        try:
            read_next_batch()
        except KeyError as error:
            (*_, place) = traceback.extract_tb(error.__traceback__)
            frame = f"{Path(place.filename).name}:{place.lineno} in {place.name}"
            lines = traceback.format_exc().splitlines()
            say_failed(f"crashed at {frame}: {error!r}", frame, lines)
        has_said_why.touch()
    else:
        while not has_said_why.exists():
            time.sleep(0.01)
        lost = "RuntimeError: Connection closed by peer [10.0.0.2]:4711"
        say_failed(f"crashed: {lost}", None, [lost])
    sys.exit(1)


def say_failed(message: str, frame: str | None, lines: list[str]) -> None:
    said = {"message": message, "frame": frame, "last_lines": lines}
    say(type="failed", trial_id=told[-1], kind="crashed", **said)


def run_trial(command: dict[str, Any]) -> None:
    told.append(command["trial_id"])
    workload = command["task"]
    for phase in ("rendezvous", "warm_up", "measure"):
        begin_phase(phase)
    kinds = {"train": train, "collectives": collectives, "command": user_script}
    kinds[workload["kind"]](workload)
    begin_phase("teardown")
    mark("teardown")
    say(type="done", trial_id=told[-1])


def main() -> None:
    faulthandler.register(signal.SIGUSR1)
    say_hello(int(RANK), "scripted")
    while (command := next_command())["type"] != "end":
        run_trial(command)


main()
