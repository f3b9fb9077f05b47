"""Does the first screen count in words that fit?"""

import pytest
from tests.engine.making import COMMAND, TRAIN, a_machine, a_plan, an_experiment, devices_of

from broadgauge.engine.kinds.command import COMMAND_S
from broadgauge.engine.plan import make_plan
from broadgauge.report.opening import plan_lines
from broadgauge.report.progress_lines import event_lines
from broadgauge.running.events import MachineRead
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.plan import Plan, PlannedLaunch, PlannedTrial
from broadgauge.specs.units import show_time


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


def test_what_is_guessed_of_a_command_is_said_beside_what_is_expected() -> None:
    experiment = an_experiment(workloads=[TRAIN, COMMAND], launches=2)
    plan = make_plan(experiment, devices_of(a_machine()))
    num_commands = sum(case.workload.kind == "command" for case in plan.cases)
    *_, line = plan_lines(experiment, plan)
    guess = show_time(COMMAND_S * 2 * num_commands, 2)
    assert line.endswith(f", {guess} of it a guess until the first command has ended")
    *_, line = plan_lines(experiment, a_plan(workloads=[TRAIN]))
    assert "guess" not in line


def test_where_ranks_run_elsewhere_this_machine_is_named_and_no_more() -> None:
    observed = MachineRead(machine=a_machine(), has_ranks=False)
    (line,) = event_lines(observed)
    assert line.endswith("only this command, the ranks run elsewhere")
    assert len(list(event_lines(MachineRead(machine=a_machine())))) == 5


@pytest.mark.parametrize(
    ("platforms", "words"),
    [
        (("kubernetes",), "x on Kubernetes: "),
        (("emulated", "kubernetes"), "x on the emulated cluster and Kubernetes: "),
    ],
)
def test_platforms_are_called_by_their_names(platforms: tuple[str, ...], words: str) -> None:
    plan = Plan(experiment_name="x", seed=0, cases=(), launches=(), expected_s=1)
    experiment = Experiment.model_construct(name="x", platform=platforms, networks=(), workloads=())
    assert words in next(plan_lines(experiment, plan))
