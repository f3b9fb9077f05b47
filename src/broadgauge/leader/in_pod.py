"""What does the leader of a job's pods do? As any leader, but a log is all that the tool has of it.

It is started by the program of the first pod, with one line of JSON on its standard input.
"""

import asyncio
import shutil
import sys
from pathlib import Path

from broadgauge.leader.log_tools import LogTools
from broadgauge.leader.main import WRONG_START, Leader
from broadgauge.leader.preflight import Preflight, networks_of
from broadgauge.messages.frames import plain_line
from broadgauge.messages.leader import LEADER_START
from broadgauge.messages.start_line import WrongStart, read_start

MEET_LIMIT_S = 300.0
"""The tool has waited for the pods to run; what is left is their names becoming known."""


class PodLeader(Leader):
    """All launches of one job."""

    async def lead(self) -> None:
        """Until it has had nothing to do for `keep_s`, or is told to stop. Raises OSError."""
        start = self._start
        tools = LogTools(
            self._spool,
            self._hello,
            self._obey,
            orders=Path(start.orders),
            output=sys.stdout.fileno(),
        )
        self._tools = tools
        server, _ = await self._agents.listen(None, start.port)
        await tools.begin()
        try:
            await self._wait_for_agents()
            await self._check_pairs()
            await self._lead_on()
        finally:
            self._agents.dismiss()
            server.close()
            await tools.close()

    async def _wait_for_agents(self) -> None:
        """Pods come up one by one; a launch that misses one says which."""
        numbers = {each.agent for job in self._jobs for each in job.job.orders}
        await self._agents.wait_for(numbers, MEET_LIMIT_S)

    async def _check_pairs(self) -> None:
        """Before GPU hours are spent."""
        networks = networks_of([each.job for each in self._jobs])
        numbers = sorted({each.agent for job in self._jobs for each in job.job.orders})
        there = tuple(number for number in numbers if self._agents.link(number) is not None)
        if not networks or len(there) < 2 or not self._start.preflight_s:
            return
        preflight = Preflight(agents=self._agents, numbers=there, limit_s=self._start.preflight_s)
        done = await preflight.check(networks)
        sys.stderr.write("".join(f"broadgauge: {plain_line(line)}\n" for line in done.lines))
        self._tell(done, self._generation)

    @property
    def _patience_s(self) -> float:
        """Its orders were there before it: who waits holds GPUs."""
        return self._start.keep_s


def main() -> int:
    """Lead until the end."""
    try:
        start = read_start(LEADER_START, sys.stdin)
    except WrongStart as error:
        sys.stderr.write(f"leader: {plain_line(str(error))}\n")
        return WRONG_START
    try:
        asyncio.run(PodLeader(start).lead())
    finally:
        shutil.rmtree(start.folder, ignore_errors=True)
    return 0
