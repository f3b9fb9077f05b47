"""Proves agent/pod/network_start.py and networks.py: what a pod's first process does about its
network before anything is started, on trees as pods have them."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import pythons
from tests.agent.pod import pods
from tests.agent.pod.mapped_fabric import WITHOUT_CAPABILITIES
from tests.agent.pod.pods import VF, asked, facts_of, vfs
from tests.agent.pod.started_pods import TWO, Pod, ended, read_until

from broadgauge.agent import bundle
from broadgauge.agent.pod import network_start
from broadgauge.agent.pod.facts import ANNOTATIONS_FILE, PodFacts
from broadgauge.agent.pod.network_start import STATUS_LIMIT_S, facts_with_nics
from broadgauge.agent.pod.networks import told_to_first
from broadgauge.messages.asked_network import AskedNetwork, network_word

ROCE = asked("roce", VF)


def words(root: Path, network: AskedNetwork = ROCE) -> tuple[str, ...]:
    return (*TWO, "--root", str(root), "--network", network_word(network), "--", "a.py")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A pod with one virtual function, and its status."""
    pods.vf_pod(tmp_path / "root", ["10.1.0.5/24"])
    facts_of(tmp_path / "root", vfs(1))
    return tmp_path / "root"


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path)


@pytest.mark.parametrize("python", [pythons.oldest, pythons.newest])
def test_ranks_are_told_what_was_found_and_the_log_says_why(
    pod: Pod, root: Path, python: Callable[[], str]
) -> None:
    code, log = pod.run(*words(root), python=python(), RANK="0", NCCL_CROSS_NIC="2")
    assert code == 0, log
    told = {key: value for key, value in pod.environment().items() if key.startswith("NCCL_")}
    assert told == {
        "NCCL_SOCKET_IFNAME": "=net1",
        "NCCL_NET": "IB",
        "NCCL_IB_HCA": "=mlx5_10:1",
        "NCCL_IB_GID_INDEX": "3",
        "NCCL_CROSS_NIC": "2",
    }
    assert pod.environment()["GLOO_SOCKET_IFNAME"] == "net1"
    lines = log.splitlines()
    assert lines[0] == "broadgauge: network fabric: net1 10.1.0.5; RDMA by mlx5_10:1"
    assert all(line.startswith("broadgauge: ") for line in lines)
    assert "NCCL_IB_GID_INDEX=3 (RoCE v2 with the NIC's own IPv4 address" in log


def test_rdma_that_was_asked_for_and_isnt_there_starts_nothing(pod: Pod, tmp_path: Path) -> None:
    machine = pods.pod(tmp_path / "root")
    machine.nic("net1", is_pair=True, address="10.1.0.5/24")
    facts_of(tmp_path / "root", vfs(1))
    code, log = pod.run(*words(tmp_path / "root"), RANK="0")
    assert code == 2
    assert (
        "broadgauge: refused: network fabric: `roce` is asked for, and no RDMA adapter belongs to "
        "net1 (10.1.0.5; the status of default/sriov-1 names it); no RDMA adapter is in this pod\n"
    ) in log
    assert not pod.has_started


def test_each_reason_is_a_line(pod: Pod, root: Path) -> None:
    (root / "sys/class/infiniband/mlx5_10/ports/1/state").write_text("1: DOWN\n")
    (root / "dev/infiniband/uverbs0").unlink()
    (root / "dev/termination-log").touch()
    code, log = pod.run(*words(root), RANK="0")
    assert code == 2
    refused = [line for line in log.splitlines() if "refused" in line]
    reason = (root / "dev/termination-log").read_text()
    assert refused == [f"broadgauge: {line}" for line in reason.splitlines()]
    assert refused == [
        "broadgauge: refused: network fabric: mlx5_10:1 is DOWN, LinkUp, not ACTIVE: cable, switch "
        "port or subnet manager",
        "broadgauge: refused: network fabric: mlx5_10: /dev/infiniband/uverbs0 is not in this "
        "container: ask for the RDMA resource (`rdma/…`, `nvidia.com/…` or `openshift.io/…`) in "
        "the pod's limits",
    ]
    assert not pod.has_started


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_a_device_file_that_does_not_open_starts_nothing(pod: Pod, root: Path) -> None:
    """As whoever has no capability: root may open what nobody may."""
    (root / "dev/infiniband/uverbs0").chmod(0)
    code, log = pod.run(
        *words(root), before=WITHOUT_CAPABILITIES, RANK="0", PATH=os.environ["PATH"]
    )
    assert code == 2
    assert "mlx5_10: /dev/infiniband/uverbs0 does not open: Permission denied" in log
    assert not pod.has_started


def test_a_word_that_is_no_network_starts_nothing(pod: Pod) -> None:
    code, log = pod.run(*TWO, "--network", '{"name": []}', "--", "a.py", RANK="0")
    assert code == 2
    assert "broadgauge: --network: no JSON of a network: name: expected" in log
    assert not pod.has_started


def test_a_status_that_comes_late_is_waited_for(pod: Pod, root: Path) -> None:
    """The kubelet writes the file first without it."""
    file = root / ANNOTATIONS_FILE.lstrip("/")
    file.write_text('kubernetes.io/config.seen="2026-11-23T10:00:00Z"\n')
    process = pod.start(*words(root), RANK="0")
    read_until(process, "waiting for the pod's network status")
    (root / "new").write_text(vfs(1))
    (root / "new").replace(file)
    code, log = ended(process)
    assert code == 0, log
    assert pod.environment()["NCCL_SOCKET_IFNAME"] == "=net1"


def test_a_pod_that_waits_for_its_network_is_ended_as_one_that_runs(pod: Pod, root: Path) -> None:
    """By a handler: the kernel keeps a container's first process from signals that have none."""
    (root / ANNOTATIONS_FILE.lstrip("/")).write_text("")
    process = pod.start(*words(root), RANK="0")
    read_until(process, "waiting for the pod's network status")
    process.send_signal(signal.SIGTERM)
    code, log = ended(process)
    assert code == 128 + signal.SIGTERM, log
    assert not pod.has_started


class Clock:
    """That sleeping moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def time(self) -> float:
        return self.now_s

    def sleep(self, time_s: float) -> None:
        self.now_s += time_s


def waited(network: AskedNetwork, read: Callable[[], PodFacts]) -> tuple[float, list[str]]:
    clock, said = Clock(), list[str]()
    facts_with_nics(network, read, said.append, clock=clock.time, sleep=clock.sleep)
    return clock.now_s, said


def test_a_status_that_never_comes_is_waited_for_with_a_limit(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    facts = facts_of(tmp_path)
    waited_s, said = waited(ROCE, lambda: facts)
    assert waited_s == STATUS_LIMIT_S
    assert len(said) == STATUS_LIMIT_S // network_start.TELL_EVERY_S + 1
    assert said[-1] == f"no network status for {STATUS_LIMIT_S:g} s"


def test_nothing_is_waited_for_that_a_status_would_not_bring(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    without, other = facts_of(tmp_path), facts_of(tmp_path, vfs(2))
    by_address = asked("roce", VF, subnets=("10.1.0.0/24",))
    assert waited(by_address, lambda: without) == (0.0, [])
    assert waited(asked("tcp"), lambda: without) == (0.0, [])
    assert waited(asked("tcp", VF), lambda: other) == (0.0, [])


def networks(root: Path, *arguments: str) -> tuple[int, str, str]:
    """`broadgauge.zip networks`."""
    archive = root.parent / "networks.zip"
    archive.write_bytes(bundle.build(bundle.POD_PARTS))
    ended = subprocess.run(
        [sys.executable, "-I", str(archive), "networks", "--root", str(root), *arguments],
        capture_output=True,
        check=False,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_people_see_what_a_pod_has(root: Path) -> None:
    code, out, _ = networks(root)
    assert code == 0
    assert out == (
        "interface eth0: veth, up, 10.128.2.7/23, default route\n"
        "interface net1: vf, up, 10.1.0.5/24\n"
        "adapter mlx5_10:1: Ethernet, ACTIVE, /dev/infiniband/uverbs0; RoCE v2 GIDs 3 10.1.0.5\n"
        "attachment ovn-kubernetes: eth0 10.128.2.7, the pod's own\n"
        "attachment default/sriov-1: net1 10.1.0.5\n"
    )


def test_people_see_the_network_that_the_first_process_was_told(root: Path) -> None:
    first = root / "proc/1/cmdline"
    first.parent.mkdir(parents=True)
    before = ("python3", "/broadgauge/program/broadgauge.zip", "pod")
    first.write_text("\0".join((*before, "--network", network_word(ROCE), "--", "x", "")))
    code, out, _ = networks(root)
    assert code == 0
    assert "network fabric: net1 10.1.0.5; RDMA by mlx5_10:1\n" in out
    code, out, _ = networks(root, "--network", network_word(asked("roce", "default/other")))
    assert code == 1
    assert "refused: network fabric: default/other is not among the networks of the pod's" in out
    code, _, err = networks(root, "--network", "x")
    assert (code, err.splitlines()[0][:34]) == (2, "--network: no JSON of a network: E")


@pytest.mark.parametrize(
    "words", [(), ("pod",), ("pod", "--", "--network", "x"), ("a", "pod", "--network")]
)
def test_a_first_process_that_was_told_none(words: tuple[str, ...]) -> None:
    assert told_to_first("\0".join(words).encode()) is None
