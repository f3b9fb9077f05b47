"""Does the end of a launch come, also where a rank can't be killed?"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broadgauge.agent.supervisor.channel import Inlet, Outlet
from broadgauge.agent.supervisor.ending import (
    DUMP_S,
    GRACE_S,
    KILL_S,
    STORAGE_KILL_S,
    Ending,
    Stage,
)
from broadgauge.agent.supervisor.rank_process import RankProcess
from broadgauge.agent.supervisor.watch import Watch
from broadgauge.messages.launch_order import RankPlan
from broadgauge.messages.vocabulary import Phase
from broadgauge.specs.time_limits import TimeLimits

SLEEPS = "import time; time.sleep(1000)"


@contextmanager
def rank_that_never_ends(folder: Path) -> Iterator[RankProcess]:
    """As far as its supervisor knows: nobody asks the kernel whether it has."""
    inlet, outlet = os.pipe()
    log = os.open(folder / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    process = subprocess.Popen([sys.executable, "-c", SLEEPS], start_new_session=True)
    plan = RankPlan(rank=0, node=0, program="worker", environment={}, log="log")
    rank = RankProcess(
        plan=plan,
        pid=process.pid,
        commands=Outlet(outlet),
        results=Inlet(inlet),
        log_fd=log,
    )
    try:
        yield rank
    finally:
        process.kill()
        process.wait()
        rank.close()


def watch_of_one() -> Watch:
    watch = Watch.of([0], TimeLimits(), 0.0)
    watch.all_enter(Phase.MEASURE, 0.0)
    return watch


def test_a_rank_that_does_not_end_when_killed_is_left(tmp_path: Path) -> None:
    watch = watch_of_one()
    with rank_that_never_ends(tmp_path) as rank:
        ending = Ending(ranks=[rank], teardown_s=1.0)
        ending.terminate(0.0)
        ending.advance(GRACE_S, watch)
        assert ending.stage is Stage.KILLING
        ending.advance(GRACE_S + KILL_S / 2, watch)
        assert not ending.is_over
        ending.advance(GRACE_S + KILL_S, watch)
        assert ending.is_over
        assert ending.next_look_s(GRACE_S + KILL_S) is None
        assert ending.stage is Stage.LEFT


def test_a_rank_that_waits_for_a_storage_is_asked_for_nothing(tmp_path: Path) -> None:
    """It can write no stack, and hears no signal but KILL."""
    watch = watch_of_one()
    with rank_that_never_ends(tmp_path) as rank:
        ending = Ending(ranks=[rank], teardown_s=1.0, stage=Stage.DUMPING, deadline_s=DUMP_S)
        ending.advance(0.0, watch)
        assert ending.stage is Stage.DUMPING
        watch.hear(0, {"type": "unanswered", "message": "storage `nas` does not answer"}, 0.0)
        ending.advance(0.0, watch)
        assert ending.stage is Stage.TERMINATING
        ending.advance(0.0, watch)
        assert ending.stage is Stage.KILLING
        ending.advance(STORAGE_KILL_S, watch)
        assert ending.stage is Stage.LEFT
