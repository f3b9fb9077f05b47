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


@pytest.mark.parametrize("which", [0, 1])
def test_a_pod_that_is_evicted_is_named_with_the_kubelets_words(
    scripted: User, kubelet: Kubelet, which: int
) -> None:
    """The leader's, and another one. What was not measured yet is measured by a successor.

    It can cost two launches: the one that runs, and the next, where its leader begins it before it
    hears that the agent is gone.
    """
    scripted.write(launches=6)
    scripted.give_rights()
    with scripted.running() as run:
        run.wait_for_a_record()
        name = str(scripted.pods()[which]["metadata"]["name"])
        kubelet.evict(scripted.namespace, name)
        output = run.ended(exit_code=None)
    assert f"{name} on " in output or f"pod {name}" in output, output
    assert "Evicted: The node was low on resource: memory" in output, output
    assert len(scripted.records()) == 6, output
    assert scripted.statuses().count("ok") >= 4, output
    assert scripted.left() == []


def test_pods_that_are_never_placed_end_the_run_at_the_users_limit(scripted: User) -> None:
    """Whether anybody has said by then why they wait is a matter of the machine: what is said at
    the limit is proven with a scripted server, the scheduler's words by test_run_faults.py."""
    scripted.write(kubernetes={"node_selector": {"gpu": "h100"}, "pending_limit_s": "5s"})
    scripted.give_rights()
    output = scripted.run(exit_code=ExitCode.PLATFORM_REFUSED)
    assert "after 5 s: " in output or "no pods were made in 5 s" in output, output
    assert scripted.left() == []


def test_an_image_that_is_not_there_is_said_in_the_registrys_words(scripted: User) -> None:
    scripted.write(kubernetes={"image": "missing/image:1"})
    scripted.give_rights()
    with scripted.running() as run:
        run.wait_for(lambda: "ImagePull" in run.said(), "the kubelet's words")
        run.interrupt()
        output = run.ended(exit_code=ExitCode.INTERRUPTED)
    assert "missing/image:1" in output, output
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
    scripted.write()
    scripted.give_rights()
    with scripted.running() as run:
        words = "1 running; 1 pod can't be made: "
        run.wait_for(lambda: words in run.said(), "the job's events")
        run.interrupt()
        output = run.ended(exit_code=ExitCode.INTERRUPTED)
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
    scripted.write(launches=12)
    scripted.give_rights()
    with scripted.running() as run:
        run.wait_for_a_record()
        name = str(scripted.pods()[1]["metadata"]["name"])
        node = kubelet.pod(scripted.namespace, name).node
        kubelet.node_gone(node)
        words = "1 pod waiting for a node (0/"
        run.wait_for(lambda: words in run.said(), "a successor that is not placed")
        run.interrupt()
        output = run.ended(exit_code=ExitCode.INTERRUPTED)
    assert f"{name} on {node}" in output, (output, scripted.records())
    assert "ok" in scripted.statuses()
    assert scripted.left() == []
