"""What does the leader of a job's pods do? As any leader, but a log is all that the tool has of it.

`python broadgauge.zip pod-leader --nodes 2 …` is the first process of a container of its own: ranks
never write to its log, and what ends them does not end it. Every pod of a job may have one; where
the pod is not node 0 it ends at once. Exit code 0: it has nothing more to do; 1: an error; 143:
SIGTERM, after it has ended its launches and told what it has.
"""

import argparse
import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from broadgauge.leader.kept_events import next_file
from broadgauge.leader.log_tools import LogTools
from broadgauge.leader.main import Leader, LeaderStart
from broadgauge.messages.leader import TOLD_TO_END, Stop
from broadgauge.messages.own_archive import version_of, zip_file
from broadgauge.messages.pod_log import say
from broadgauge.messages.pod_start import (
    WRONG_START,
    NoPlaceError,
    end_at_sigterm,
    node_of,
    run_parser,
    take_place,
)

LOOK_EVERY_S = 1.0
TELL_EVERY_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLeaderOptions:
    """What a leader in a pod has to know beside what every leader has."""

    num_nodes: int
    port: int
    """Where its agents find it."""
    orders: Path
    """The folder in which they come."""
    meet_s: float
    """How long it waits for all pods of the job before it goes on without some."""
    output: int
    """The descriptor of its log."""
    results: Path | None = None
    """A folder that outlives the pod, for its events; None: they go with it."""


class PodLeader(Leader):
    """All launches of one job."""

    def __init__(self, start: LeaderStart, options: PodLeaderOptions) -> None:
        self._options = options
        self.exit_code = 0
        super().__init__(start)

    def _spool_path(self) -> Path:
        """Raises OSError."""
        results = self._options.results
        return super()._spool_path() if results is None else next_file(results)

    @property
    def _disk(self) -> Path:
        return self._options.results or super()._disk

    async def lead(self) -> None:
        """Until it has had nothing to do for `keep_s`, or is told to stop. Raises OSError."""
        options = self._options
        tools = LogTools(
            self._spool, self._hello, self._obey, orders=options.orders, output=options.output
        )
        self._tools = tools
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end, tools)
        await tools.begin()
        try:
            await self._lead_from(options.port, tools)
        finally:
            await tools.close()

    async def _lead_from(self, port: int, tools: LogTools) -> None:
        """A port that it can't have is told to the tool, too."""
        try:
            server, _ = await self._agents.listen(None, port)
        except OSError as error:
            tools.give_up(f"port {port}, where agents look for the leader: {error.strerror}")
            self.exit_code = 1
            return
        try:
            await self._meet(tools)
            await self._lead_on()
        finally:
            self._agents.dismiss()
            server.close()

    def _end(self, tools: LogTools) -> None:
        """Of the pod, as the cluster wants it."""
        self.exit_code = 128 + signal.SIGTERM
        tools.give_up(TOLD_TO_END)
        self._obey(Stop())

    async def _meet(self, tools: LogTools) -> None:
        """Pods come one after another: others may wait for a node, or for their image, long after
        this one. Those that are missing are named."""
        wanted, limit_s = range(self._options.num_nodes), self._options.meet_s
        begun_s = told_s = time.monotonic()
        while not self._is_stopped:
            missing = await self._agents.wait_for(wanted, LOOK_EVERY_S)
            now_s = time.monotonic()
            if not missing:
                tools.say(f"all {len(wanted)} nodes are there")
                return
            if now_s - begun_s >= limit_s:
                tools.say(f"{_nodes(missing)} did not come in {limit_s:g} s: going on without")
                return
            if now_s - told_s >= TELL_EVERY_S:
                told_s = now_s
                waited = f"{now_s - begun_s:.0f} s so far, {limit_s:g} s at most"
                tools.say(f"waiting for {_nodes(missing)} of {len(wanted)}: {waited}")

    def _end_full(self) -> None:
        """Its log has all that it kept, and says at its end why there is no more."""
        self._is_stopped = True
        super()._end_full()

    @property
    def _patience_s(self) -> float:
        """Its orders were there before it: who waits holds GPUs."""
        return self._start.keep_s


def _nodes(numbers: Sequence[int]) -> str:
    return f"node{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def parser() -> argparse.ArgumentParser:
    """Of what the manifest says."""
    found = run_parser("pod-leader")
    found.add_argument("--orders", type=Path, required=True, help="the folder in which they come")
    found.add_argument("--results", type=Path, help="a folder that outlives the pod, for events")
    found.add_argument(
        "--keep-s",
        type=float,
        required=True,
        help="how long it stays with nothing to do, for a tool to collect what it has",
    )
    return found


def main() -> int:
    """Lead until the end."""
    end_at_sigterm()
    options = parser().parse_args()
    try:
        if node_of(os.environ, options.nodes) != 0:
            return 0
        place = take_place(os.environ, options.nodes)
    except NoPlaceError as error:
        say(str(error))
        return WRONG_START
    archive = zip_file()
    assert archive is not None, "a pod has the zip file and nothing else of ours"
    folder = options.scratch / "leader"
    start = LeaderStart(
        folder=str(folder),
        address=place.address,
        token=place.token,
        version=version_of(archive.read_bytes()),
        keep_s=options.keep_s,
    )
    with_pod = PodLeaderOptions(
        num_nodes=options.nodes,
        port=options.port,
        orders=options.orders,
        meet_s=options.meet_s,
        output=sys.stdout.fileno(),
        results=options.results,
    )
    try:
        with suppress(FileNotFoundError):  # of a container that was started again
            shutil.rmtree(folder)
        folder.mkdir(0o700, parents=True)
        leader = PodLeader(start, with_pod)
        asyncio.run(leader.lead())
    except OSError as error:
        say(f"the leader ends: {error}")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return leader.exit_code


if __name__ == "__main__":
    sys.exit(main())
