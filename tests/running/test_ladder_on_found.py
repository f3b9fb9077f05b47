"""Proves running/ladder.py: on other machines the networks that are there are the rungs."""

from dataclasses import replace
from typing import Any

import pytest
from tests.engine.making import COLLECTIVES, COMMAND, TRAIN, a_machine, an_experiment, devices_of

from broadgauge.engine.plan import make_plan
from broadgauge.running.ladder import MESSAGE_BYTES, as_ladder, check_nodes
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.text.writing import dump_experiment

FOUND: list[dict[str, Any]] = [
    {"name": "pod", "found": {"interface": "eth0"}},
    {"name": "vnic", "rate_gbps": 10, "found": {"interface": "eth1", "transport": "tcp"}},
    {"name": "sriov", "found": {"interface": "eth2"}},
    {"name": "emulated-only", "rate_gbps": 1},
]
RDMA: dict[str, Any] = {"name": "roce", "found": {"interface": "ib0", "transport": "roce"}}


def on_hosts(**changes: Any) -> Experiment:
    known: dict[str, Any] = {
        "platform": "hosts",
        "hosts": ["node0", "node1"],
        "networks": FOUND,
        "cluster": {"shapes": ["1x1", "2x1"]},
        "workloads": [TRAIN | {"networks": ["pod"]}],
    }
    return an_experiment(**known | changes)


def kinds(experiment: Experiment) -> list[tuple[str, str]]:
    return [(each.kind, each.name) for each in experiment.workloads]


def test_the_networks_that_are_there_are_the_rungs() -> None:
    ladder = as_ladder(on_hosts())
    assert [each.name for each in ladder.networks] == ["pod", "vnic", "sriov"]
    assert ladder.platforms == ("hosts",)
    assert ladder.name == "tiny-ladder"
    assert ladder.cluster.shapes == ("2x1",)
    assert [each.networks for each in ladder.workloads] == [None, None]
    assert read_experiment(dump_experiment(ladder), "ladder.yaml") == ladder
    cases = make_plan(ladder, devices_of(a_machine())).cases
    assert len(cases) == 6
    check_nodes(ladder, replace(a_machine(), can_emulate=False))


def test_an_all_reduce_beside_a_training_says_what_a_network_carries() -> None:
    ladder = as_ladder(on_hosts())
    assert kinds(ladder) == [("train", "train"), ("collectives", "rate")]
    rate = ladder.workloads[-1]
    assert rate.kind == "collectives"
    assert (rate.ops, rate.sizes) == (("all_reduce",), (MESSAGE_BYTES,))


LARGE: dict[str, Any] = COLLECTIVES | {"sizes": [4096, 64 * 2**20]}


def test_the_experiments_own_large_all_reduces_say_it_too() -> None:
    ladder = as_ladder(on_hosts(workloads=[TRAIN, LARGE | {"networks": ["pod"]}]))
    assert kinds(ladder) == [("train", "train"), ("collectives", "collectives")]
    assert ladder.workloads[-1].networks is None


@pytest.mark.parametrize(
    "other",
    [
        COLLECTIVES,  # too small
        LARGE | {"ops": ["all_gather"]},
        {"kind": "collectives", "name": "pairs", "pairwise": True, "sizes": [64 * 2**20]},
    ],
)
def test_other_collectives_do_not_stand_for_one(other: dict[str, Any]) -> None:
    """A run would be measured, and have no curve."""
    ladder = as_ladder(on_hosts(workloads=[TRAIN, other]))
    assert kinds(ladder) == [("train", "train"), ("collectives", "rate")]


def test_a_command_that_surely_goes_by_sockets_needs_no_torch_for_it() -> None:
    """Plain TCP streams say it; where NCCL may send by RDMA they don't."""
    sockets = [each | {"found": each["found"] | {"transport": "tcp"}} for each in FOUND[:3]]
    assert kinds(as_ladder(on_hosts(workloads=[COMMAND], networks=sockets))) == [
        ("command", "command")
    ]
    on_cores = on_hosts(workloads=[COMMAND], cluster={"shapes": ["2x1"], "device": "cpu"})
    assert kinds(as_ladder(on_cores)) == [("command", "command")]
    by_gloo = on_hosts(workloads=[COMMAND], cluster={"shapes": ["2x1"], "backend": "gloo"})
    assert kinds(as_ladder(by_gloo)) == [("command", "command")]
    for networks in (FOUND, [*sockets, RDMA]):
        ladder = as_ladder(on_hosts(workloads=[COMMAND], networks=networks))
        assert kinds(ladder) == [("command", "command"), ("collectives", "rate")]


def test_what_the_experiment_skips_on_a_network_is_skipped_still() -> None:
    rules = [
        {"workload": "train", "network": ["sriov", "emulated-only"]},
        {"network": "emulated-only"},
    ]
    ladder = as_ladder(on_hosts(skip_if=rules))
    assert read_experiment(dump_experiment(ladder), "ladder.yaml") == ladder
    cases = make_plan(ladder, devices_of(a_machine())).cases
    trained = {case.plain_network_name for case in cases if case.workload.kind == "train"}
    assert trained == {"pod", "vnic"}


def test_each_platform_has_three_networks_of_its_own() -> None:
    """One in pods makes no third of two on hosts."""
    in_pods = {"name": "in-pods", "kubernetes": "pod"}
    networks = [*FOUND[:2], in_pods]
    with pytest.raises(InputError, match="tiny names 2 networks on hosts"):
        as_ladder(on_hosts(platform=["hosts", "kubernetes"], networks=networks))


def test_a_workload_that_has_the_name_keeps_it() -> None:
    ladder = as_ladder(on_hosts(workloads=[TRAIN | {"name": "rate"}]))
    assert kinds(ladder) == [("train", "rate"), ("collectives", "rate-of-network")]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"rates_gbps": (1, 2, 3)}, "--rates: no rate can be set on hosts"),
        ({"network_name": "pod"}, "--network: no rate can be set on hosts"),
    ],
)
def test_no_rate_is_set_where_none_can_be(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        as_ladder(on_hosts(), **asked)
    assert "--on emulated" in str(refused.value.hint)


def test_two_networks_are_no_curve() -> None:
    with pytest.raises(InputError, match=r"tiny names 2 networks on hosts, .* needs 3"):
        as_ladder(on_hosts(networks=FOUND[:2]))


def test_an_experiment_that_is_emulated_too_is_a_ladder_of_rates() -> None:
    ladder = as_ladder(on_hosts(platform=["emulated", "hosts"]), (1.0, 2.0, 4.0))
    assert ladder.platforms == ("emulated",)
    assert [each.name for each in ladder.networks][:3] == ["1-gbit", "2-gbit", "4-gbit"]
