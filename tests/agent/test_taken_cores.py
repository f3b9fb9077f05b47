"""Is what others use of the cores told from what this process uses, in a look that is too short
for nobody?"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from broadgauge.advise.limits import FOREIGN_ELAPSED_S
from broadgauge.agent import taken_cores
from broadgauge.agent.facts import HOST_FACTS, read_facts
from broadgauge.agent.taken_cores import (
    SHORTEST_LOOK_S,
    CoresLook,
    TakenCores,
    look,
    taken_between,
    taken_since,
)
from broadgauge.messages.codec import encode

CORES = sorted(os.sched_getaffinity(0))
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def stat(folder: Path, *, cores: list[int] = CORES) -> Path:
    """Each core: 300 ticks of programs, 50 of packets, 40 stolen; others more."""
    path = folder / "stat"
    lines = [f"cpu{core} 100 50 120 9000 7 30 50 40 0 0\n" for core in cores]
    others = f"cpu{max(CORES) + 1} 9000 0 9000 0 0 0 0 9000 0 0\n"
    path.write_text("cpu 1 2 3 4 5 6 7 8 0 0\n" + "".join(lines) + others + "intr 1\n")
    return path


def a_look(
    moment_s: float, programs_s: float = 0.0, stolen_s: float = 0.0, own_s: float = 0.0
) -> CoresLook:
    return CoresLook(
        moment_s=moment_s,
        programs_s=programs_s,
        stolen_s=stolen_s,
        own_s=own_s,
        cores_count=2,
    )


def test_the_cores_of_this_process_are_read_and_no_others(tmp_path: Path) -> None:
    seen = look(stat(tmp_path))
    assert seen is not None
    assert seen.cores_count == len(CORES)
    assert seen.programs_s == pytest.approx(300 * TICK_S * len(CORES))
    assert seen.stolen_s == pytest.approx(40 * TICK_S * len(CORES))


def test_cores_that_the_kernel_does_not_show_are_unknown(tmp_path: Path) -> None:
    """As in containers whose cores are numbered anew, or without a /proc at all."""
    assert look(stat(tmp_path, cores=CORES[1:])) is None
    assert look(tmp_path / "nothing") is None
    (tmp_path / "other").write_text("cpu0 what is this\n")
    assert look(tmp_path / "other") is None
    assert taken_since(None) is None
    assert taken_since(a_look(0.0), lambda: None) is None


def test_others_have_what_is_busy_beside_this_process() -> None:
    before = a_look(10.0, programs_s=100.0, stolen_s=7.0, own_s=3.0)
    after = a_look(10.5, programs_s=100.9, stolen_s=7.1, own_s=3.3)
    taken = taken_between(before, after)
    assert taken is not None
    assert taken.foreign_busy_ratio == pytest.approx(0.6)  # 0.6 of two cores' 0.5 s
    assert taken.stolen_ratio == pytest.approx(0.1)
    assert (taken.elapsed_s, taken.cores_count) == (0.5, 2)


def test_what_is_sampled_never_gives_less_than_nothing_or_more_than_all() -> None:
    """The kernel samples the cores' time, and this process' own is exact."""
    idle = taken_between(a_look(0.0), a_look(1.0, programs_s=0.30, own_s=0.31))
    full = taken_between(a_look(0.0), a_look(1.0, programs_s=2.02, stolen_s=2.02))
    assert idle is not None
    assert full is not None
    assert (idle.foreign_busy_ratio, idle.stolen_ratio) == (0.0, 0.0)
    assert (full.foreign_busy_ratio, full.stolen_ratio) == (1.0, 1.0)


def test_a_look_that_began_just_now_waits_for_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [5.0]
    waited_s: list[float] = []

    def sleep(span_s: float) -> None:
        waited_s.append(span_s)
        now_s[0] += span_s

    monkeypatch.setattr(taken_cores.time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(taken_cores, "_pause", sleep)
    now_s[0] += 0.1  # of the start-up
    assert taken_since(a_look(5.0), lambda: a_look(now_s[0])) is not None
    assert waited_s == [pytest.approx(SHORTEST_LOOK_S - 0.1)]
    now_s[0] += 10
    taken = taken_since(a_look(5.0), lambda: a_look(now_s[0]))
    assert taken is not None
    assert taken.elapsed_s > 10
    assert len(waited_s) == 1


def test_a_look_is_long_enough_for_what_is_said_of_it() -> None:
    assert FOREIGN_ELAPSED_S < SHORTEST_LOOK_S <= 0.5


def test_what_this_process_and_its_ended_children_use_is_its_own() -> None:
    before = look()
    program = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", program], check=True)
    after = look()
    assert before is not None
    assert after is not None
    assert after.own_s - before.own_s > 0.2 - 2 * TICK_S
    assert after.programs_s >= before.programs_s


def test_a_host_says_it_with_its_facts() -> None:
    facts = read_facts()
    assert isinstance(facts.taken, TakenCores)
    assert facts.taken.elapsed_s >= SHORTEST_LOOK_S
    assert HOST_FACTS(json.loads(json.dumps(encode(facts)))) == facts
