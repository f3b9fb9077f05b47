"""Do real ranks over Gloo send one way, one pair at a time, and is a fault of one way found?"""

import itertools
import sys
from pathlib import Path

import pytest
from tests.merging.outcomes import make_case

from broadgauge.merging.merge import merge
from broadgauge.specs.records.record import ErrorKind, Status
from broadgauge.specs.workloads.workload import CollectivesWorkload

from .harness import Ranks

pytestmark = pytest.mark.measuring
PLANTED = Path(__file__).parent / "planted.py"
PAIRWISE = CollectivesWorkload(
    kind="collectives",
    pairwise=True,
    sizes=(4, 2**18),
    dtypes=("bfloat16",),
    min_iterations=3,
    max_iterations=6,
    budget_s=0.02,
)


@pytest.mark.parametrize(
    ("nodes", "ranks_per_node"),
    [
        (3, 1),
        pytest.param(2, 2, marks=pytest.mark.slow),
        pytest.param(1, 3, marks=pytest.mark.slow),
    ],
)
def test_every_end_sends_to_every_other(nodes, ranks_per_node, tmp_path):
    case = make_case(PAIRWISE, nodes=nodes, ranks_per_node=ranks_per_node)
    with Ranks(case.world_size, tmp_path, ranks_per_node=ranks_per_node) as ranks:
        outcome = ranks.run_trial(case)
        assert outcome.status is Status.OK, ranks.logs()
    trial = merge(case, outcome, None)
    assert trial.error is None
    ends = (0, 2) if ranks_per_node == 2 else (0, 1, 2)
    rows = trial.measurement.collectives
    assert [(row.size_bytes, row.from_rank, row.to_rank) for row in rows] == [
        (size, *pair) for size in (4, 2**18) for pair in itertools.permutations(ends, 2)
    ]
    assert all(row.is_correct and 3 <= row.iterations <= 6 for row in rows)


@pytest.mark.slow
def test_marks_enclose_each_pair_alone(tmp_path):
    """Between a message's marks no other one is under way: each has a begin and an end."""
    case = make_case(PAIRWISE, nodes=3)
    with Ranks(3, tmp_path) as ranks:
        outcome = ranks.run_trial(case)
        assert outcome.status is Status.OK, ranks.logs()
    labels = [mark.label for mark in outcome.marks if mark.label != "teardown"]
    assert labels[::2] == [label.replace(":end", ":begin") for label in labels[1::2]]
    assert len(labels) == 2 * 2 * 6


FAULTY = (0, 2)


def run_with(fault, tmp_path):
    """The trial, and its rows by their way."""
    case = make_case(PAIRWISE.model_copy(update={"sizes": (2**18,)}), nodes=3)
    planted = (sys.executable, str(PLANTED), fault)
    with Ranks(3, tmp_path, scripts={0: planted}) as ranks:
        outcome = ranks.run_trial(case)
        assert outcome.status is Status.OK, ranks.logs()
    trial = merge(case, outcome, None)
    return trial, {(row.from_rank, row.to_rank): row for row in trial.measurement.collectives}


def test_what_is_lost_on_one_way_is_found_on_that_way_alone(tmp_path):
    """Each message of that way is late, too, and its time has all of that."""
    trial, rows = run_with("delay_and_corrupt_messages_to_rank_2", tmp_path)
    assert [way for way, row in rows.items() if not row.is_correct] == [FAULTY]
    assert trial.error is not None
    assert (trial.error.kind, trial.error.rank) == (ErrorKind.WRONG_RESULT, 2)
    assert rows[FAULTY].time_min_s >= 0.1


@pytest.mark.measured
def test_a_delay_of_one_way_shows_in_that_way_alone(tmp_path):
    _, rows = run_with("delay_messages_to_rank_2", tmp_path)
    assert [way for way, row in rows.items() if row.time_min_s >= 0.1] == [FAULTY]
