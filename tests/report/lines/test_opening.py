"""Does the first screen count in words that fit?"""

from typing import Any

import pytest
from tests.engine.making import COMMAND, TRAIN, a_machine, a_plan, an_experiment, devices_of

from broadgauge.catalog.catalog import shipped_catalog
from broadgauge.engine.kinds.command import COMMAND_S
from broadgauge.engine.plan import make_plan
from broadgauge.report.lines.opening import plan_lines
from broadgauge.report.lines.progress import event_lines
from broadgauge.report.words.cost import usd_words
from broadgauge.running.events import PlanMade
from broadgauge.running.rendering.devices import pod_devices
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


ON_GPUS = {"shapes": ["1x8", "2x8"], "device": "cuda"}
IMAGE = {"image": "registry.example/train:1"}
IN_PODS = [{"name": "pod", "rate_gbps": 1, "kubernetes": "pod"}]
UNKNOWN = "unknown: nobody knows how long your command takes"


def in_pods(expected_s: float = 720.0, **changes: Any) -> list[str]:
    """The lines of what a run holds of a cluster, of one that is expected to take so long."""
    known = {"platform": "kubernetes", "kubernetes": IMAGE, "networks": IN_PODS}
    experiment = an_experiment(**{**known, "workloads": [TRAIN], "cluster": ON_GPUS, **changes})
    devices = {**devices_of(a_machine()), "kubernetes": pod_devices(experiment)}
    plan = make_plan(experiment, devices).model_copy(update={"expected_s": expected_s})
    lines = list(event_lines(PlanMade(experiment=experiment, plan=plan)))
    (first,) = [number for number, line in enumerate(lines) if line.startswith("expected")]
    return lines[first + 1 :]


def test_gpu_hours_are_those_of_all_pods_for_the_whole_run() -> None:
    assert in_pods(cost={"usd_per_gpu_hour": 2.5}) == [
        "kubernetes 1 job of 2 pods × 8 GPUs: 16 GPUs held while it runs",
        "GPU-hours  about 3.2, without pulling images and waiting for nodes",
        "cost       about $8, at $2.5 for a GPU and hour (as the experiment says)",
    ]


def test_without_a_price_it_is_said_how_to_have_one() -> None:
    *_, cost = in_pods()
    assert cost == (
        "cost       unknown: the experiment has no price, as `cost: {usd_per_gpu_hour: 2.95}`"
    )
    assert in_pods(cost={"tokens": "1B"})[-1] == cost


def test_gpus_that_ranks_leave_idle_are_held_and_paid_for_too() -> None:
    lines = in_pods(
        expected_s=3600,
        kubernetes={**IMAGE, "gpus_per_pod": 8},
        cluster={"shapes": ["1x4"], "device": "cuda"},
        cost={"usd_per_gpu_hour": 2.5},
    )
    assert lines[0] == "kubernetes 1 job of 1 pod × 8 GPUs: 8 GPUs held while it runs"
    assert lines[1].startswith("GPU-hours  about 8,")
    assert lines[2].startswith("cost       about $20,")


@pytest.mark.parametrize(
    ("cost", "usd"),
    [({"usd_per_node_hour": 55.04}, "$22"), ({"node": "p5.48xlarge"}, None)],
    ids=("node", "catalog"),
)
def test_a_nodes_price_is_that_of_each_pod(cost: dict[str, Any], usd: str | None) -> None:
    *_, line = in_pods(cost=cost)
    if usd is None:
        price = shipped_catalog().gpu_price("h100-sxm", "p5.48xlarge")
        assert price is not None
        usd = usd_words(price.price_usd_per_hour * 3.2)
        assert line.split(" at ")[1].startswith(f"${price.price_usd_per_hour:.4g} for a GPU of p5")
    assert line.startswith(f"cost       about {usd}, at ")


def test_the_time_of_a_command_is_unknown_and_an_hours_price_is_not() -> None:
    assert in_pods(workloads=[TRAIN, COMMAND], cost={"usd_per_gpu_hour": 2.5}) == [
        "kubernetes 1 job of 2 pods × 8 GPUs: 16 GPUs held while it runs",
        f"GPU-hours  {UNKNOWN}; 16 in each hour",
        f"cost       {UNKNOWN}; $40 in each hour, at $2.5 for a GPU and hour (as the experiment "
        "says)",
    ]


@pytest.mark.parametrize(
    ("cost", "told"),
    [
        (None, []),
        ({"usd_per_node_hour": 3}, ["about $1.2, at $3 for a node and hour"]),
        ({"usd_per_gpu_hour": 3}, ["unknown: the price is a GPU's, and CPUs compute here"]),
    ],
    ids=("none", "node", "gpu"),
)
def test_cores_have_no_gpu_hours(cost: dict[str, Any] | None, told: list[str]) -> None:
    pods, *lines = in_pods(cluster={"shapes": ["2x2"], "device": "cpu"}, cost=cost)
    assert pods == "kubernetes 1 job of 2 pods: ranks compute on cores"
    assert len(lines) == len(told)
    for line, words in zip(lines, told, strict=True):
        assert line.startswith(f"cost       {words}")


def test_pods_are_held_while_other_platforms_measure() -> None:
    """Launches of both take turns."""
    here = {"cluster": {"shapes": ["2x1"], "device": "cpu"}, "platform": ["emulated", "kubernetes"]}
    pods, cost = in_pods(expected_s=3600, cost={"usd_per_node_hour": 3}, **here)
    assert pods.startswith("kubernetes 1 job of 2 pods:")
    assert cost.startswith("cost       about $6,")


def test_nothing_is_said_of_a_cluster_where_none_is_used() -> None:
    assert in_pods(platform="emulated", cluster={"shapes": ["2x1"], "device": "cpu"}) == []
