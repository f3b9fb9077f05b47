"""Does the first screen count in words that fit?"""

import pytest

from broadgauge.report.opening import plan_lines
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.plan import Plan, PlannedLaunch, PlannedTrial


@pytest.mark.parametrize(
    ("number", "words"),
    [(1, "0 cases, 1 block, 1 launch, 1 trial"), (2, "0 cases, 2 blocks, 2 launches, 2 trials")],
)
def test_one_is_singular(number: int, words: str) -> None:
    launches = tuple(
        PlannedLaunch(
            launch_id=f"b{block}.l0",
            block=block,
            trials=(PlannedTrial(trial_id=f"b{block}.l0.t0", case_key="a", trial=0),),
            expected_s=1,
        )
        for block in range(number)
    )
    plan = Plan(experiment_name="x", seed=0, cases=(), launches=launches, expected_s=1)
    experiment = Experiment.model_construct(name="x", platform="local", networks=(), workloads=())
    assert next(plan_lines(experiment, plan)).endswith(f": {words}")
