"""Jobs whose every microsecond is known, as the profiler would have traced them.

A job is played forward: CPUs call, streams work in order, a collective begins to spin when its rank
reaches it and ends on all ranks together, `transfer_us` after the last one came. What each
microsecond went to is painted from that play (truth.py), never from names or events.
Times are whole microseconds. Every rank has a clock of its own, days apart.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMPUTE, COMMUNICATION, MAIN, GRADIENTS = 7, 20, 4711, 24
"""Streams: compute, all-gathers; the CPU's thread; the stream of reduce-scatters."""
LAUNCH_US, LATENCY_US = 2, 3
CLOCK_US = 4_674_988_500_000


@dataclass
class Done:
    """What a rank's GPU did, as it was played."""

    kind: str
    start: int
    end: int
    launch: int
    transfer: int = 0
    """Of a collective: when the last rank had come."""


@dataclass
class Played:
    """One rank: where its clocks stand, what it did, and the events of its trace."""

    rank: int
    cpu: int = 0
    streams: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    done: list[Done] = field(default_factory=list)
    calm: list[tuple[str, int, int]] = field(default_factory=list)
    """Ranges of the CPU that give idle time a part: (part, start, end)."""
    steps: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(number, CPU's begin, CPU's end, end of the GPU's work)."""
    events: list[dict[str, Any]] = field(default_factory=list)
    correlation: int = 0
    launched: dict[int, int] = field(default_factory=dict)


class Job:
    """Ranks that are played together. `skew_us` sets the ranks' clocks apart."""

    def __init__(self, num_ranks: int, *, skew_us: int = 86_400_000_000) -> None:
        self.ranks = [Played(rank) for rank in range(num_ranks)]
        self.skew_us = skew_us
        self.groups = {"0": tuple(range(num_ranks))}
        self.first_traced = 0
        self.gap_us = 0
        """Between kernels of a stream, however early they were launched."""

    # What ranks do

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        begins = [rank.cpu for rank in self.ranks]
        before = [len(rank.done) for rank in self.ranks]
        yield
        for rank, begin, first in zip(self.ranks, begins, before, strict=True):
            rank.cpu += 1
            work = [done.end for done in rank.done[first:]]
            rank.steps.append((number, begin, rank.cpu, max(work, default=rank.cpu)))
            self._span(rank, "user_annotation", f"ProfilerStep#{number}", (begin, rank.cpu))
            rank.cpu += 1

    @contextmanager
    def under(self, rank: Played, name: str, part: str | None = None) -> Iterator[None]:
        begin = rank.cpu
        yield
        rank.cpu += 1
        self._span(rank, "user_annotation", name, (begin, rank.cpu))
        if part is not None:
            rank.calm.append((part, begin, rank.cpu))

    def sleep(self, rank: Played, time_us: int) -> None:
        rank.cpu += time_us

    def load(self, rank: Played, time_us: int) -> None:
        with self.under(
            rank, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "data_wait"
        ):
            rank.cpu += time_us

    def kernel(
        self,
        rank: Played,
        time_us: int,
        *,
        name: str = "sm90_xmma_gemm_bf16",
        kind: str = "compute",
        stream: int = COMPUTE,
        operator: str = "aten::mm",
    ) -> None:
        begin = rank.cpu
        launch, correlation = self._launch(rank, "cudaLaunchKernel")
        self._span(rank, "cpu_op", operator, (begin, rank.cpu))
        start = max(rank.streams[stream] + self.gap_us, launch + LATENCY_US)
        self._gpu(
            rank, kind, name, (start, start + time_us), stream=stream, correlation=correlation
        )

    def graph(self, rank: Played, times_us: Sequence[int]) -> None:
        """Kernels that one launch of a graph replays."""
        launch, correlation = self._launch(rank, "cudaGraphLaunch")
        for place, time_us in enumerate(times_us):
            start = max(rank.streams[COMPUTE], launch + LATENCY_US)
            name = f"triton_poi_fused_{place}"
            self._gpu(
                rank,
                "compute",
                name,
                (start, start + time_us),
                stream=COMPUTE,
                correlation=correlation,
            )

    def copy(self, rank: Played, time_us: int) -> None:
        """From the host's memory."""
        launch, correlation = self._launch(rank, "cudaMemcpyAsync")
        start = max(rank.streams[COMPUTE], launch + LATENCY_US)
        name = "Memcpy HtoD (Pinned -> Device)"
        self._gpu(
            rank, "copy", name, (start, start + time_us), stream=COMPUTE, correlation=correlation
        )

    def wait(self, rank: Played, stream: int, other: int) -> None:
        """What comes on `stream` waits for what was given to `other`."""
        rank.streams[stream] = max(rank.streams[stream], rank.streams[other])

    def synchronise(self, rank: Played) -> None:
        begin = rank.cpu
        rank.cpu = max(rank.cpu + 1, *rank.streams.values())
        self._span(rank, "cuda_runtime", "cudaStreamSynchronize", (begin, rank.cpu))

    def collective(
        self,
        kind: str,
        elements: int,
        transfer_us: int,
        *,
        group: str = "0",
        stream: int = COMMUNICATION,
        delay_us: int = 0,
    ) -> None:
        """All ranks of the group. `delay_us` is lost in it: the network is slow for once."""
        members = [self.ranks[rank] for rank in self.groups[group]]
        begun = []
        for rank in members:
            opened = rank.cpu
            launch, correlation = self._launch(rank, "cudaLaunchKernelExC")
            self._span(rank, "cpu_op", "record_param_comms", (opened, rank.cpu))
            start = max(rank.streams[stream], launch + LATENCY_US)
            begun.append((rank, start, correlation))
        last = max(start for _, start, _ in begun)
        end = last + transfer_us + delay_us
        for rank, start, correlation in begun:
            times = (start, last, end)
            self._nccl(
                rank, kind, elements, group, times=times, stream=stream, correlation=correlation
            )

    # How the profiler writes it

    def _nccl(
        self,
        rank: Played,
        kind: str,
        elements: int,
        group: str,
        *,
        times: tuple[int, int, int],
        stream: int,
        correlation: int,
    ) -> None:
        size = len(self.groups[group])
        asked, kernel = {
            "all_reduce": ("allreduce", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
            "all_gather": ("_allgather_base", "ncclDevKernel_AllGather_RING_LL"),
            "reduce_scatter": ("_reduce_scatter_base", "ncclKernel_ReduceScatter_RING_SIMPLE"),
            "broadcast": ("broadcast", "ncclDevKernel_Broadcast_RING_LL"),
        }[kind]
        taken = elements // size if kind == "all_gather" else elements
        given = elements // size if kind == "reduce_scatter" else elements
        facts = {
            "Collective name": asked,
            "In msg nelems": taken,
            "Out msg nelems": given,
            "Group size": size,
            "dtype": "BFloat16",
            "Process Group Name": group,
            "Process Group Description": "default_pg" if group == "0" else f"mesh_{group}",
            "Process Group Ranks": str(list(self.groups[group])),
        }
        start, last, end = times
        self._gpu(
            rank,
            "communication",
            kernel,
            (start, end),
            stream=stream,
            correlation=correlation,
            facts=facts,
        )
        rank.done[-1].transfer = last

    def _launch(self, rank: Played, call: str) -> tuple[int, int]:
        rank.correlation += 1
        self._span(rank, "cuda_runtime", call, (rank.cpu, rank.cpu + LAUNCH_US), rank.correlation)
        rank.launched[rank.correlation] = rank.cpu
        rank.cpu += LAUNCH_US
        return rank.cpu - LAUNCH_US, rank.correlation

    def _gpu(
        self,
        rank: Played,
        kind: str,
        name: str,
        times: tuple[int, int],
        *,
        stream: int,
        correlation: int,
        facts: dict[str, Any] | None = None,
    ) -> None:
        start, end = times
        rank.streams[stream] = end
        rank.done.append(Done(kind, start, end, rank.launched[correlation]))
        category = "gpu_memcpy" if name.startswith("Mem") else "kernel"
        arguments: dict[str, Any] = {
            "External id": correlation,
            "device": rank.rank,
            "context": 1,
            "stream": stream,
            "correlation": correlation,
        }
        if category == "kernel":
            arguments |= {"grid": [132, 1, 1], "block": [128, 1, 1], "registers per thread": 168}
        event = self._event(rank, category, name, times, arguments | (facts or {}))
        rank.events.append(event | {"pid": 0, "tid": stream})

    def _span(
        self, rank: Played, category: str, name: str, times: tuple[int, int], correlation: int = 0
    ) -> None:
        arguments = {"External id": len(rank.events), "correlation": correlation}
        if category != "cuda_runtime":
            del arguments["correlation"]
        rank.events.append(self._event(rank, category, name, times, arguments))

    def _event(
        self,
        rank: Played,
        category: str,
        name: str,
        times: tuple[int, int],
        arguments: dict[str, Any],
    ) -> dict[str, Any]:
        start, end = times
        return {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": 4000 + rank.rank,
            "tid": MAIN,
            "ts": CLOCK_US + rank.rank * self.skew_us + start,
            "dur": end - start,
            "args": arguments,
        }

    def document(self, rank: int) -> dict[str, Any]:
        """The trace of one rank, from the first step that is traced."""
        played = self.ranks[rank]
        (first,) = [begin for number, begin, *_ in played.steps if number == self.first_traced]
        since = CLOCK_US + rank * self.skew_us + first
        return {
            "schemaVersion": 1,
            "deviceProperties": [{"id": rank, "name": "NVIDIA H200"}],
            "distributedInfo": {
                "backend": "nccl",
                "rank": rank,
                "world_size": len(self.ranks),
                "pg_count": len(self.groups),
            },
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": 1_790_857_026_000_000_000,
            "traceEvents": [
                *(event for event in played.events if _is_traced(event, since)),
                {"ph": "s", "id": 1, "pid": 4000, "tid": MAIN, "ts": since, "cat": "ac2g"},
                {"name": "process_name", "ph": "M", "ts": since, "pid": "Spans", "tid": 0},
                {
                    "name": "Record Window End",
                    "ph": "i",
                    "s": "g",
                    "pid": "",
                    "tid": "",
                    "ts": since,
                },
            ],
            "traceName": f"rank{rank}.json",
        }

    def write(self, folder: Path, *, is_zipped: bool = False) -> list[Path]:
        """A file a rank, indented as Kineto does."""
        paths = []
        for rank in range(len(self.ranks)):
            text = json.dumps(self.document(rank), indent=2).encode()
            path = folder / f"rank{rank}.pt.trace.json{'.gz' if is_zipped else ''}"
            path.write_bytes(gzip.compress(text, 1) if is_zipped else text)
            paths.append(path)
        return paths


def _is_traced(event: dict[str, Any], since: int) -> bool:
    """The GPU's work is traced from the start on, also what was launched before."""
    is_of_gpu = event["cat"] in ("kernel", "gpu_memcpy")
    return bool(event["ts"] + event["dur"] > since if is_of_gpu else event["ts"] >= since)
