"""Are other programs on a node's cores told from its ranks? With real launches and a real loop."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.platforms.launches import make_case, run_once

from broadgauge.agent.cores import cores_by_neighbourhood, share_out
from broadgauge.agent.supervisor.cpu_use import cpu_seconds, process_seconds, ranks_seconds
from broadgauge.merging.counters import intervals_by_label, nodes_use
from broadgauge.specs.launching import TrialOutcome
from broadgauge.specs.records.record import NodeUse

KINDS = ["local", pytest.param("emulated", marks=pytest.mark.namespaces)]
both = pytest.mark.parametrize("kind", KINDS)
QUIET = 0.1
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
SAYING_S = 0.5
"""Of the core, for what a rank says after it has read its clock: some milliseconds."""


def core_of(kind: str) -> int:
    """The one core of the node whose rank works."""
    cores, _ = share_out(cores_by_neighbourhood(), make_case(kind).nodes, 1)
    return cores[-1][0]


def use_of(outcome: TrialOutcome) -> NodeUse:
    return nodes_use(list(intervals_by_label(outcome.marks).values()))[-1]


def own_seconds(outcome: TrialOutcome) -> tuple[float, float]:
    """What the working rank itself read from its clock, before its work and after it."""
    (block,) = (message for message in outcome.messages[1] if message.get("kind") == "own")
    before_s, after_s = block["seconds"]
    return float(before_s), float(after_s)


def busy_ratio(core: int, span_s: float = 0.5) -> float:
    before = sum(cpu_seconds()[core][:3])
    time.sleep(span_s)
    return (sum(cpu_seconds()[core][:3]) - before) / span_s


@contextmanager
def busy_loop(core: int) -> Iterator[None]:
    """Another program, held to that core."""
    program = f"import os; os.sched_setaffinity(0, [{core}]); print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


@both
def test_the_cores_are_the_ranks_and_others(kind: str, tmp_path: Path) -> None:
    """However busy the machine is: the rank's own clock says how much of it was the rank's, and a
    loop that never ends on its core is not."""
    with busy_loop(core_of(kind)):
        outcome = run_once(kind, tmp_path, "works")
    node = use_of(outcome)
    before_s, after_s = own_seconds(outcome)
    assert node.ranks_cpu_s is not None
    assert after_s - before_s - 2 * TICK_S <= node.ranks_cpu_s <= after_s + SAYING_S
    assert node.cpu_user_s is not None
    assert node.cpu_system_s is not None
    foreign_s = node.cpu_user_s + node.cpu_system_s - node.ranks_cpu_s
    assert node.foreign_busy_ratio == pytest.approx(foreign_s / node.elapsed_s / node.cores_count)
    assert 0 < node.foreign_busy_ratio < node.cpu_busy_ratio <= 1


@pytest.mark.measured
@both
def test_a_busy_loop_has_a_fair_share_of_the_nodes_core(kind: str, tmp_path: Path) -> None:
    with busy_loop(core_of(kind)):
        ratio = use_of(run_once(kind, tmp_path, "works")).foreign_busy_ratio
    assert ratio is not None
    assert ratio > 0.25


@pytest.mark.measured
@both
def test_without_other_programs_nothing_is_foreign(kind: str, tmp_path: Path) -> None:
    core, ratios = core_of(kind), []
    for attempt in range(3):
        others = busy_ratio(core)
        if others < QUIET / 2:
            ratio = use_of(run_once(kind, tmp_path / str(attempt), "works")).foreign_busy_ratio
            assert ratio is not None
            ratios.append(ratio)
            others = max(others, busy_ratio(core))
            if ratio < QUIET:
                return
    if others > QUIET / 2:
        pytest.skip(f"not judged: another program uses {others:.0%} of core {core}")
    pytest.fail(f"foreign without another program: {ratios}")


def test_every_core_has_four_times_that_only_grow() -> None:
    before, after = cpu_seconds(), cpu_seconds()
    assert set(before) >= os.sched_getaffinity(0)
    for core, seconds in after.items():
        assert len(seconds) == 4
        assert all(now >= then >= 0 for now, then in zip(seconds, before[core], strict=True))


def test_children_that_were_waited_for_count() -> None:
    before = process_seconds(os.getpid())
    program = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", program], check=True)
    after = process_seconds(os.getpid())
    assert before is not None
    assert after is not None
    assert after - before > 0.25


def test_nodes_that_share_cores_share_the_ranks() -> None:
    alive, before_s = os.getpid(), process_seconds(os.getpid())
    shared = ranks_seconds([(0,), (1,), (0,)], [(0, alive), (1, None), (2, alive)])
    after_s = process_seconds(os.getpid())
    assert before_s is not None
    assert after_s is not None
    assert shared[0] == shared[2]
    assert shared[0] is not None
    assert 2 * before_s <= shared[0] <= 2 * after_s
    assert shared[1] is None
    with subprocess.Popen(["true"]) as ended:
        pass
    assert process_seconds(ended.pid) is None


@pytest.mark.measured
def test_reading_many_ranks_takes_little_of_a_mark() -> None:
    ranks = [(0, os.getpid())] * 8
    spans_s = []
    for _ in range(50):
        start_s = time.perf_counter()
        ranks_seconds([(0, 1)], ranks)
        spans_s.append(time.perf_counter() - start_s)
    assert min(spans_s) < 0.001
