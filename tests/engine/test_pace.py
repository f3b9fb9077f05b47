"""Does the remaining time follow each case, and not the worst estimate among them?"""

import pytest

from broadgauge.engine.expected_time import start_s, trial_s
from broadgauge.engine.kinds.command import COMMAND_S
from broadgauge.engine.pace import Remaining
from broadgauge.specs.case import Case
from broadgauge.specs.workloads.workload import (
    CollectivesWorkload,
    CommandMetric,
    CommandWorkload,
    TrainWorkload,
    Workload,
)

COMMAND = CommandWorkload(
    kind="command",
    command=("train.py",),
    metrics=(CommandMetric(name="step_time_s", json_key="step_time_s"),),
)


def a_case(workload: Workload) -> Case:
    return Case(
        workload=workload,
        network=None,
        nodes=1,
        ranks_per_node=2,
        device="cpu",
        backend="gloo",
        environment={},
    )


TRAIN, COLLECTIVES, OWN = map(
    a_case, (TrainWorkload(kind="train"), CollectivesWorkload(kind="collectives"), COMMAND)
)


def after_an_overrun(times: float, *left: Case) -> float:
    """What is left once a training took so many times its estimate."""
    remaining = Remaining()
    remaining.expect([TRAIN, *left])
    remaining.started(TRAIN, start_s(TRAIN))
    remaining.ran(TRAIN, times * trial_s(TRAIN), is_ok=True)
    return remaining.seconds()


def test_a_guess_is_not_scaled_by_another_case() -> None:
    assert after_an_overrun(20.0, OWN) == pytest.approx(COMMAND_S)


def test_an_overrun_scales_the_estimates_of_others_within_bounds() -> None:
    estimate = trial_s(COLLECTIVES)
    assert estimate < after_an_overrun(20.0, COLLECTIVES) < 4.01 * estimate
    assert after_an_overrun(1e6, COLLECTIVES) == pytest.approx(4 * estimate)


def test_the_same_case_is_expected_to_take_as_long_again() -> None:
    assert after_an_overrun(20.0, TRAIN) == pytest.approx(20 * trial_s(TRAIN))
    remaining = Remaining()
    remaining.expect([OWN, OWN, TRAIN])
    remaining.started(OWN, 3.0)
    remaining.ran(OWN, 2.5, is_ok=True)
    assert remaining.seconds() == pytest.approx(2.5 + trial_s(TRAIN))


def test_failures_are_taken_off_and_teach_nothing() -> None:
    remaining = Remaining()
    remaining.expect([OWN, OWN])
    remaining.started(OWN, 3.0)
    remaining.ran(OWN, 900.0, is_ok=False)
    assert remaining.seconds() == pytest.approx(COMMAND_S)


def test_a_command_is_expected_to_take_on_the_others_what_it_took_on_the_first() -> None:
    here, there = OWN, OWN.model_copy(update={"ranks_per_node": 3})
    other = OWN.model_copy(
        update={"workload": COMMAND.model_copy(update={"name": "other", "command": ("b.py",)})}
    )
    remaining = Remaining()
    for case in (here, there, other):
        remaining.expect([case])
    before_s = remaining.seconds()
    remaining.ran(here, 7.0, is_ok=True)
    assert before_s - remaining.seconds() == pytest.approx(2 * COMMAND_S - 7.0)
    remaining.ran(there, 9.0, is_ok=False)
    assert before_s - remaining.seconds() == pytest.approx(2 * COMMAND_S)
