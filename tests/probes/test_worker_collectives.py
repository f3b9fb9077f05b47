"""Do real ranks over Gloo measure collectives, and find what is wrong with them?"""

import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest
from tests.merging.outcomes import make_case

from broadgauge.merging.merge import merge
from broadgauge.specs.records.record import ErrorKind, Phase, Status
from broadgauge.specs.workloads.workload import CollectiveOp, CollectivesWorkload

from .harness import Ranks

pytestmark = pytest.mark.measuring
PLANTED = Path(__file__).parent / "planted.py"
WORKLOAD = CollectivesWorkload(
    kind="collectives",
    sizes=(1, 1000, 2**20),
    dtypes=("float32", "bfloat16"),
    min_iterations=3,
    max_iterations=10,
    budget_s=0.02,
)
EVERY_OP = WORKLOAD.model_copy(update={"ops": get_args(CollectiveOp)})


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with Ranks(2, tmp_path_factory.mktemp("pair")) as ranks:
        yield ranks


@pytest.mark.parametrize("world_size", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_all_collectives_are_measured_and_right(world_size, tmp_path):
    case = make_case(WORKLOAD if world_size == 1 else EVERY_OP, nodes=world_size)
    with Ranks(world_size, tmp_path) as ranks:
        outcome = ranks.run_trial(case)
        assert outcome.status is Status.OK, ranks.logs()
    trial = merge(case, outcome, None)
    assert trial.error is None
    rows = trial.measurement.collectives
    assert all(row.is_correct and 3 <= row.iterations <= 10 for row in rows)
    assert {(row.op, row.dtype) for row in rows} == {
        (op, dtype) for op in case.workload.ops for dtype in case.workload.dtypes
    }
    assert all(row.size_bytes <= 2**20 for row in rows)
    has_bandwidth = trial.measurement.metrics["busbw_gbyte_per_s"] is not None
    assert has_bandwidth == (world_size > 1)


def test_every_trial_of_a_launch_has_new_connections(pair):
    """Sockets of the first trial's group are gone in the second; only the store's are left."""
    case = make_case(WORKLOAD.model_copy(update={"sizes": (1000,)}))
    counts = []
    for number in range(3):
        outcome = pair.run_trial(case, trial_id=f"t{number}")
        assert outcome.status is Status.OK, pair.logs()
        counts.append(num_sockets(pair.ranks[1].process.pid))
    assert counts == [1, 1, 1]


def num_sockets(pid):
    found = 0
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            found += "socket:" in str(fd.readlink())
    return found


def test_a_corrupted_result_is_found_on_the_rank_that_has_it(tmp_path):
    case = make_case(WORKLOAD)
    planted = (sys.executable, str(PLANTED), "corrupt_all_reduce")
    with Ranks(2, tmp_path, scripts={1: planted}) as ranks:
        outcome = ranks.run_trial(case)
        assert outcome.status is Status.OK, ranks.logs()
        assert "element 5 of the result is wrong" in ranks.logs()
    error = merge(case, outcome, None).error
    assert error is not None
    assert error.kind is ErrorKind.WRONG_RESULT
    assert error.rank == 1
    assert "all_reduce float32" in error.message


def test_phases_come_in_order_and_marks_are_unique(pair):
    outcome = pair.run_trial(make_case(WORKLOAD), trial_id="phases")
    phases = [m["phase"] for m in outcome.messages[0] if m["type"] == "phase"]
    assert re.fullmatch("r(wm)+t", "".join(phase[0] for phase in phases))
    labels = [mark.label for mark in outcome.marks]
    assert len(labels) == len(set(labels))


def test_a_worker_whose_agent_is_gone_leaves(tmp_path):
    """Without a word from it, also when it waits for nothing but its peer."""
    ranks = Ranks(1, tmp_path, is_forked=False)
    ranks.ranks[0].close()
    assert ranks.ranks[0].process.returncode == 1
    assert "the agent closed its pipe" in ranks.logs()


def test_each_phase_has_its_own_limit_of_the_process_group(tmp_path):
    """The warm-up sends as much, and may take longer: 256 MiB take ten times the limit anywhere."""
    case = make_case(WORKLOAD.model_copy(update={"sizes": (2**28,), "dtypes": ("float32",)}))
    with Ranks(2, tmp_path) as ranks:
        outcome = ranks.run_trial(case, timeouts_s={Phase.MEASURE: 0.01}, hear_all=True)
    failed = [m for said in outcome.messages for m in said if m["type"] == "failed"]
    hung = [m for m in failed if m["kind"] == ErrorKind.HUNG]  # the other may see the first one go
    assert hung
    assert "10ms" in hung[0]["message"]
    phases = [m["phase"] for m in outcome.messages[0] if m["type"] == "phase"]
    assert phases[-2:] == [Phase.WARM_UP, Phase.MEASURE]
