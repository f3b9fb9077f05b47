"""What are a preflight's networks in a pod, and what does it lack? On trees as pods have them."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.agent.pod import pods
from tests.agent.pod.pods import VF, asked, facts_of, vfs

from broadgauge.agent.pod.facts import PodFacts, read_pod_facts
from broadgauge.agent.preflight.part import LookedUpNetwork
from broadgauge.agent.preflight.pod_networks import look_for_networks
from broadgauge.messages.preflight import CheckedNetwork

ROCE = asked("roce", VF)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A pod with one virtual function, and its status."""
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    facts_of(tmp_path, vfs(1))
    return tmp_path


def looked_up(root: Path, *given: dict[str, str], **more: object) -> LookedUpNetwork:
    def read(variables: Mapping[str, str]) -> PodFacts:
        return read_pod_facts(root, variables)

    checked = CheckedNetwork(name="roce", network=ROCE, given=given)
    found = look_for_networks((checked,), read, limit_s=0.0)
    assert found.hardware.hcas
    (network,) = found.networks
    return network


def test_a_network_has_its_interface_its_address_and_the_rate_of_its_adapter(root: Path) -> None:
    assert looked_up(root) == LookedUpNetwork(
        name="roce",
        interfaces=("net1",),
        addresses=("10.1.0.5",),
        is_rdma=True,
        port_rates_gbps=(400.0,),
    )


def test_rdma_that_is_asked_for_and_not_there_is_a_problem(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    facts_of(tmp_path, vfs(1))
    files = [path for path in (tmp_path / "dev/infiniband").iterdir() if "uverbs" in path.name]
    for path in files:
        path.unlink()
    (problem, *_) = looked_up(tmp_path).problems
    assert "is not in this container" in problem


def test_what_stands_in_the_way_of_some_launches_only_is_no_problem(root: Path) -> None:
    """One names an adapter that is not there; another leaves it to the pod."""
    wrong = {"NCCL_IB_HCA": "mlx5_77"}
    (problem,) = looked_up(root, wrong).problems
    assert "mlx5_77" in problem
    assert looked_up(root, wrong, {}).problems == ()


def test_a_status_that_has_not_come_yet_is_no_problem_of_the_network(root: Path) -> None:
    """A launch waits for it for minutes."""
    facts_of(root, "")
    found = looked_up(root)
    assert found.problems == ()
    assert found.unknown is not None
    assert found.interfaces == ()
