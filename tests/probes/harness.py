"""Plays the supervisor for real worker processes on this machine, over pipes.

    with Ranks(world_size=2) as ranks:
        outcome = ranks.run_trial(case)

Marks are answered with the counters that `counters` gives (made up, by default): everything that
a platform does for a probe, without nodes.
"""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.probes.forked_rank import ForkedRank

from broadgauge.messages.frames import FrameReader, FrameWriter
from broadgauge.messages.free_port import free_port
from broadgauge.messages.rank import (
    COMMAND_FD_VARIABLE,
    RESULT_FD_VARIABLE,
    Command,
    EndCommand,
    ReleaseCommand,
    TrialCommand,
)
from broadgauge.specs.case import Case
from broadgauge.specs.launching import Mark, NodeCounters, TrialOutcome
from broadgauge.specs.records.record import Phase, Status, TrialError
from broadgauge.specs.workloads.tasks import layout_of, task_of

Counters = Callable[[int], NodeCounters]
WORKER = (sys.executable, "-m", "broadgauge.probes.worker")
COMMAND_WORKER = (sys.executable, "-m", "broadgauge.probes.command")
LIMIT_S = 480
"""Against hangs: many times what any trial here takes, below pytest's own."""


def made_up_counters(reading: int) -> NodeCounters:
    """The same growth between any two marks: 10 MB out, 20 MB in, 0.1 s of each CPU time."""
    return NodeCounters(
        tx_bytes=reading * 10_000_000,
        rx_bytes=reading * 20_000_000,
        drops_count=0,
        retransmits_count=reading,
        cores_count=1,
        cpu_user_s=reading * 0.1,
        cpu_system_s=reading * 0.1,
        cpu_softirq_s=reading * 0.1,
    )


class Rank:
    """One worker process, its two pipes and its log."""

    def __init__(
        self,
        command: tuple[str, ...],
        environment: dict[str, str],
        log: Path,
        *,
        is_forked: bool = False,
    ) -> None:
        command_read, self.command_fd = os.pipe()
        self.result_fd, result_write = os.pipe()
        fds = {COMMAND_FD_VARIABLE: command_read, RESULT_FD_VARIABLE: result_write}
        self.log = log
        variables = os.environ | environment
        start = ForkedRank if is_forked else _start_anew
        self.process = start(command, variables, fds, log)
        os.close(command_read)
        os.close(result_write)
        self.reader, self.writer = FrameReader(), FrameWriter("harness")
        self.is_open = True
        self.messages: list[dict[str, Any]] = []

    def send(self, command: Command) -> None:
        os.write(self.command_fd, self.writer.write(command))

    def read(self) -> None:
        data = os.read(self.result_fd, 1 << 16)
        self.is_open = bool(data)
        self.messages += [received.message for received in self.reader.feed(data)[0]]

    def said(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["type"] == kind]

    def close(self) -> None:
        os.close(self.command_fd)
        try:
            self.process.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.result_fd)


def _start_anew(
    command: Sequence[str], environment: Mapping[str, str], fds: Mapping[str, int], log: Path
) -> "subprocess.Popen[bytes]":
    """As the supervisor does."""
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            env={**environment, **{name: str(fd) for name, fd in fds.items()}},
            pass_fds=tuple(fds.values()),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


class Ranks:
    """`world_size` workers on one machine; `scripts` replaces the worker of some ranks.

    `is_forked`: from a process that has imported torch. Without it each is a process of its own.
    """

    def __init__(
        self,
        world_size: int,
        folder: Path,
        *,
        ranks_per_node: int = 1,
        scripts: dict[int, tuple[str, ...]] | None = None,
        command: tuple[str, ...] = WORKER,
        environment: dict[str, str] | None = None,
        counters: Counters = made_up_counters,
        is_forked: bool = True,
    ) -> None:
        self.counters, self.reading = counters, 0
        self.num_nodes = world_size // ranks_per_node
        port = free_port("127.0.0.1")
        self.ranks = []
        for rank in range(world_size):
            contract = {
                "RANK": str(rank),
                "WORLD_SIZE": str(world_size),
                "LOCAL_RANK": str(rank % ranks_per_node),
                "LOCAL_WORLD_SIZE": str(ranks_per_node),
                "GROUP_RANK": str(rank // ranks_per_node),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "GLOO_SOCKET_IFNAME": "lo",
                "OMP_NUM_THREADS": "1",
            }
            script = (scripts or {}).get(rank, command)
            log = folder / f"rank{rank}.log"
            self.ranks.append(
                Rank(script, contract | (environment or {}), log, is_forked=is_forked)
            )

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, *_: object) -> None:
        for rank in self.ranks:
            with contextlib.suppress(BrokenPipeError):  # of a rank that has just failed
                rank.send(EndCommand())
        for rank in self.ranks:
            rank.close()

    def logs(self) -> str:
        return "\n".join(f"{r.log.name}: {r.log.read_text(errors='replace')}" for r in self.ranks)

    def run_trial(
        self,
        case: Case,
        *,
        trial_id: str = "t0",
        seed: int = 1,
        limit_s: float = LIMIT_S,
        timeouts_s: dict[Phase, float] | None = None,
        hear_all: bool = False,
    ) -> TrialOutcome:
        """Ends when every rank is done, or one has failed, left, or the limit has passed.

        `hear_all`: not before each rank has failed, left or is done.
        """
        started_s, marks = time.time(), []
        for rank in self.ranks:
            rank.messages = [message for message in rank.messages if message["type"] == "hello"]
            rank.send(
                TrialCommand(
                    trial_id=trial_id,
                    task=task_of(case),
                    layout=layout_of(case),
                    seed=seed,
                    process_group_timeouts_s=dict.fromkeys(Phase, limit_s / 2) | (timeouts_s or {}),
                )
            )
        while not self._has_ended(hear_all) and time.time() < started_s + limit_s:
            fds = {rank.result_fd: rank for rank in self.ranks if rank.is_open}
            for fd in select.select(list(fds), [], [], 1)[0]:
                fds[fd].read()
            if mark := self._release():
                marks.append(mark)
        is_ok = all(rank.said("done") for rank in self.ranks)
        return TrialOutcome(
            status=Status.OK if is_ok else Status.FAILED,
            started_unix_s=started_s,
            ended_unix_s=time.time(),
            error=None if is_ok else self._error(),
            messages=tuple(tuple(rank.messages) for rank in self.ranks),
            marks=tuple(marks),
        )

    def _has_ended(self, hear_all: bool) -> bool:
        lost = [rank.said("failed") or not rank.is_open for rank in self.ranks]
        done = [rank.said("done") for rank in self.ranks]
        return all(map(any, zip(lost, done, strict=True))) or (any(lost) and not hear_all)

    def _release(self) -> Mark | None:
        """Lets all go on once all are at the same mark."""
        reached = [rank.said("mark") for rank in self.ranks]
        if not all(reached) or len({len(marks) for marks in reached}) > 1:
            return None
        labels = {marks[-1]["label"] for marks in reached}
        number = len(reached[0])
        if len(labels) > 1 or number == getattr(self, "_released", (None, 0))[1]:
            return None
        self.reading += 1
        nodes = tuple(self.counters(self.reading) for _ in range(self.num_nodes))
        mark = Mark(label=labels.pop(), time_s=time.monotonic(), nodes=nodes)
        self._released = (mark.label, number)
        for rank in self.ranks:
            rank.send(ReleaseCommand(label=mark.label))
        return mark

    def _error(self) -> TrialError | None:
        for number, rank in enumerate(self.ranks):
            for failed in rank.said("failed"):
                return TrialError(kind=failed["kind"], message=failed["message"], rank=number)
        return None
