"""What does a user read where a cluster gives no pods, or takes them away? In the words of whoever
does it, with what was measured kept."""

from dataclasses import replace

import pytest
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import NodeSpec, host_image
from tests.kubernetes.runs import User

from broadgauge.specs.errors import ExitCode

pytestmark = [pytest.mark.kubernetes, pytest.mark.root, pytest.mark.namespaces]

NODES = {
    "nodes": NodeSpec.several(2, resources={"cpu": "8", "memory": "16Gi"}),
    "default_image": replace(host_image(), user=1_000_680_000),
}
SOON = {"pending_limit_s": "20s"}
"""Whoever says why they wait has said it by then, also on a busy machine."""


@pytest.mark.parametrize("which", [0, 1])
def test_a_pod_that_is_evicted_is_named_with_the_kubelets_words(
    scripted: User, kubelet: Kubelet, which: int
) -> None:
    """The leader's, and another one. What was not measured yet is measured by a successor."""
    scripted.write(launches=6)
    scripted.give_rights()
    with scripted.running() as run:
        run.wait_for(lambda: scripted.statuses() != [], "a first record")
        name = str(scripted.pods()[which]["metadata"]["name"])
        kubelet.evict(scripted.namespace, name)
        output = run.ended(exit_code=None)
    assert f"{name} on " in output or f"pod {name}" in output, output
    assert "Evicted: The node was low on resource: memory" in output, output
    assert len(scripted.records()) == 6
    assert scripted.statuses().count("ok") >= 5, output
    assert scripted.left() == []


def test_pods_that_are_never_placed_end_the_run_with_the_schedulers_reason(scripted: User) -> None:
    scripted.write(kubernetes={"node_selector": {"gpu": "h100"}, **SOON})
    scripted.give_rights()
    output = scripted.run(exit_code=ExitCode.PLATFORM_REFUSED)
    assert "after 20 s: 2 pods waiting for a node (0/" in output, output
    assert "kubernetes.pending_limit_s" in output
    assert scripted.left() == []


def test_an_image_that_is_not_there_ends_the_run_with_the_registrys_words(scripted: User) -> None:
    scripted.write(kubernetes={"image": "missing/image:1", **SOON})
    scripted.give_rights()
    output = scripted.run(exit_code=ExitCode.PLATFORM_REFUSED)
    assert "missing/image:1" in output, output
    assert "ImagePull" in output
    assert scripted.left() == []


def test_a_quota_that_leaves_out_a_pod_is_said_in_its_own_words(scripted: User) -> None:
    """Only the events of the job say it: its second pod is never made."""
    about = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    scripted.scratch.create(about | {"spec": {"hard": {"pods": "1"}}})

    def is_held() -> bool:
        """Before its controller has counted, it lets everything in."""
        (found,) = scripted.scratch.find("v1", "ResourceQuota")
        return bool(found.get("status", {}).get("hard"))

    wait_until(is_held, "the controller of quotas")
    scripted.write(kubernetes={"pending_limit_s": "30s"})
    scripted.give_rights()
    output = scripted.run(exit_code=ExitCode.PLATFORM_REFUSED)
    assert "after 30 s: 1 running; 1 pod can't be made:" in output, output
    assert "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1" in output
    assert scripted.left() == []


def test_two_runs_share_a_namespace_and_each_deletes_its_own(scripted: User) -> None:
    scripted.write(launches=2)
    scripted.give_rights()
    with scripted.running() as one, scripted.running() as other:
        first, second = one.ended(), other.ended()
    assert first != second
    found = [*(scripted.folder / "runs").glob("*/records.jsonl")]
    assert [len(each.read_text().splitlines()) for each in found] == [2, 2]
    assert scripted.left() == []


@pytest.mark.thorough
def test_a_node_that_is_gone_is_named(scripted: User, kubelet: Kubelet) -> None:
    """The last test: its node does not come back. Nobody tells the API server of its pod's end."""
    scripted.write(launches=12, kubernetes=SOON)
    scripted.give_rights()
    with scripted.running() as run:
        run.wait_for(lambda: scripted.statuses() != [], "a first record")
        name = str(scripted.pods()[1]["metadata"]["name"])
        node = kubelet.pod(scripted.namespace, name).node
        kubelet.node_gone(node)
        output = run.ended(exit_code=ExitCode.PLATFORM_REFUSED)
    assert f"{name} on {node}" in output, output
    assert "ok" in scripted.statuses()
    assert scripted.left() == []
