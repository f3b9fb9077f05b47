"""Proves agent/pod/addresses.py, the init container, and what the entrypoint then finds, by the zip
file, in real namespaces."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import pythons
from tests.agent.pod.mapped_fabric import NICS, NUM_PODS, given_by_ipam, mapped, others, subnets

from broadgauge.agent import bundle
from broadgauge.agent.pod.address_map import AddressMapError, InterfacePlan
from broadgauge.agent.pod.addresses import find_interfaces, main, read_plans

LIMIT_S = 500
"""Against hangs."""
PODS = range(NUM_PODS)
PROGRAMS = ("unshare", "nsenter", "setpriv", "ip", "tc")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came to pass on the fabric, the first time under the oldest Python."""
    folder = tmp_path_factory.mktemp("fabric")
    archive = folder / "broadgauge.zip"
    archive.write_bytes(bundle.build(bundle.POD_PARTS))
    ended = subprocess.run(
        ["unshare", "-rn", sys.executable, "-m", "tests.agent.pod.mapped_fabric", archive, folder,
         pythons.oldest(), pythons.newest()],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


@pytest.mark.namespaces
@pytest.mark.skipif(not all(map(shutil.which, PROGRAMS)), reason=f"needs {', '.join(PROGRAMS)}")
class TestOnAFabric:
    def test_what_ipam_gave_is_dropped(self, told: dict[str, Any]) -> None:
        """And reached every NIC as long as the fabric took any source."""
        there = [others(pod, given_by_ipam) for pod in PODS]
        assert told["open"] == [dict.fromkeys(each, "reached") for each in there]
        assert [sorted(each) for each in told["dropped"]] == [sorted(each) for each in there]
        answers = {answer for each in told["dropped"] for answer in each.values()}
        assert answers <= {"EHOSTUNREACH", "ETIMEDOUT"}

    def test_all_reach_all_by_the_map(self, told: dict[str, Any]) -> None:
        assert told["after"] == [dict.fromkeys(others(pod, mapped), "reached") for pod in PODS]

    def test_what_was_changed_is_printed(self, told: dict[str, Any]) -> None:
        assert [(code, err) for code, _, err in told["first"]] == [(0, "")] * NUM_PODS
        assert told["first"][0][1].splitlines() == [
            "net1: address 192.168.1.1/24 removed",
            "net1: address 10.249.65.4/24 added",
            "net1: routes: 3 (3 added, 0 removed)",
            "net2: address 192.168.2.1/24 removed",
            "net2: address 10.249.67.4/24 added",
            "net2: routes: 3 (3 added, 0 removed)",
        ]

    def test_nothing_is_left_of_what_ipam_gave(self, told: dict[str, Any]) -> None:
        """Not of its second address either, which some kernels drop with the first."""
        for pod, lines in zip(PODS, told["states"], strict=True):
            addresses = [line.split()[3] for line in lines if " inet " in line]
            assert addresses == [f"{mapped(pod, nic)}/24" for nic in NICS]
            routes = {line.split()[0]: line for line in lines if " metric 150" in line}
            assert sorted(routes) == sorted(others(pod, mapped))
            assert all("proto 182 scope link" in line for line in routes.values())
            assert len(lines) == 2 * len(NICS) + len(routes)

    def test_a_second_run_changes_nothing(self, told: dict[str, Any]) -> None:
        said = "".join(
            f"net{nic}: address {mapped(0, nic)}/24 is there\n"
            f"net{nic}: routes: 3 (0 added, 0 removed)\n"
            for nic in NICS
        )
        assert told["again"][0] == [0, said, ""]
        assert [code for code, _, _ in told["again"]] == [0] * NUM_PODS
        assert told["states_again"] == told["states"]

    def test_a_changed_map_takes_away_what_is_gone(self, told: dict[str, Any]) -> None:
        """What was on the link is behind a gateway now; the worker's address is another, and with
        the old one the kernel drops the interface's routes."""
        (_, master, _), (_, worker, _) = told["changed"]
        assert master.splitlines() == [
            "net1: address 10.249.65.4/24 is there",
            "net1: routes: 1 (1 added, 3 removed)",
        ]
        assert worker.splitlines() == [
            "net1: address 10.249.66.5/24 removed",
            "net1: address 10.249.66.55/24 added",
            "net1: routes: 1 (1 added, 0 removed)",
        ]
        routes = [line for line in told["states_changed"][1] if "dev net1 proto 182" in line]
        assert routes == ["10.249.65.4 dev net1 proto 182 scope link metric 150"]
        on_net1 = [line for line in told["states_changed"][0] if "dev net1" in line]
        assert on_net1 == [
            "10.249.65.0/24 dev net1 proto kernel scope link src 10.249.65.4",
            "10.249.66.55 via 10.249.65.1 dev net1 proto 182 metric 150",
        ]

    def test_the_entrypoint_finds_what_the_map_gave(self, told: dict[str, Any]) -> None:
        """By address, in whichever of the nodes' subnets."""
        for code, out, err in told["networks"]:
            assert (code, err) == (0, "")
            lines = out.splitlines()
            assert "network vnics: net1 10.249.66.7, net2 10.249.68.7" in lines
            of_sockets = [line for line in lines if "NCCL_SOCKET_IFNAME" in line]
            assert of_sockets == [
                "  NCCL_SOCKET_IFNAME==net1,net2 (net1: its address is in 10.249.65.0/24 or "
                "10.249.66.0/24; net2: its address is in 10.249.67.0/24 or 10.249.68.0/24)"
            ]

    def test_an_interface_of_any_name_is_found(self, told: dict[str, Any]) -> None:
        code, out, _ = told["renamed"]
        assert code == 0
        assert "network vnics: net1 10.249.66.7, rail@0 10.249.68.7" in out.splitlines()

    def test_rdma_that_is_not_there_starts_nothing(self, told: dict[str, Any]) -> None:
        code, out, err = told["refused"]
        assert (code, err) == (2, "")
        refused = [line for line in out.splitlines() if "refused" in line]
        assert refused == [
            f"broadgauge: refused: network vnics: `roce` is asked for, and no RDMA adapter belongs "
            f"to net{nic} ({mapped(3, nic)}; its address is in {' or '.join(subnets(nic))}); no "
            "RDMA adapter is in this pod"
            for nic in NICS
        ]
        assert "torch.distributed.run" not in out

    def test_an_interface_that_is_absent(self, told: dict[str, Any]) -> None:
        """Nothing is changed then: `net1` is there, and comes before it."""
        assert told["absent"] == [
            1,
            "",
            "addresses: net7: not among this pod's interfaces, lo, net1, net2\n"
            "hint: name those that it has: BROADGAUGE_ADDRESS_INTERFACES=net1,net2\n",
        ]
        assert told["state_still"] == told["state_before"]

    def test_without_the_capability(self, told: dict[str, Any]) -> None:
        assert told["powerless"] == [
            1,
            "",
            "addresses: net1 can't be brought up: Operation not permitted\n"
            "hint: the init container needs, in its securityContext, runAsUser: 0 and "
            "capabilities.add: [NET_ADMIN]\n",
        ]
        assert told["state_still"] == told["state_before"]


def test_nothing_attached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cluster without Multus takes the annotation and does nothing."""
    (tmp_path / "map").write_text("n:e:net1:10.0.0.1\n")
    monkeypatch.setattr("socket.if_nameindex", lambda: [(1, "lo"), (2, "eth0")])
    plans = read_plans({"BROADGAUGE_ADDRESS_MAP": str(tmp_path / "map"), "NODE_HOSTNAME": "n"})
    with pytest.raises(AddressMapError) as caught:
        find_interfaces(plans)
    assert str(caught.value) == (
        "net1: not among this pod's interfaces, eth0, lo\nhint: nothing is attached: the cluster "
        "needs Multus, which reads the pod's annotation k8s.v1.cni.cncf.io/networks"
    )


def interfaces(plans: tuple[InterfacePlan, ...]) -> list[str]:
    return [plan.interface for plan in plans]


def test_variables(tmp_path: Path) -> None:
    names = tmp_path / "map.yaml"
    names.write_text("n:e:net1:10.0.0.1\nn:f:net2:10.0.1.1\nm:e:net1:10.0.0.2\n")
    environ = {"BROADGAUGE_ADDRESS_MAP": str(names), "NODE_HOSTNAME": "n"}
    assert interfaces(read_plans(environ)) == ["net1", "net2"]
    assert interfaces(read_plans(environ | {"BROADGAUGE_ADDRESS_INTERFACES": " net2,"})) == ["net2"]
    named = environ | {"BROADGAUGE_NODE_NAME": "m"}
    assert [str(plan.address) for plan in read_plans(named)] == ["10.0.0.2/24"]
    with pytest.raises(AddressMapError, match="the node's name is not known\nhint: set BROADGAUGE"):
        read_plans({"BROADGAUGE_ADDRESS_MAP": str(names)})
    with pytest.raises(AddressMapError, match="the address map has no line for net3 of node n"):
        read_plans(environ | {"BROADGAUGE_ADDRESS_INTERFACES": "net3"})


def test_a_map_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(AddressMapError, match=r"^/broadgauge/addresses/nodename_ip_mapping\.yaml: "
                       "No such file or directory\nhint: mount the ConfigMap"):  # fmt: skip
        read_plans({"BROADGAUGE_NODE_NAME": "n"})
    (tmp_path / "map").write_bytes(b"a:e:net1:\xff\xfe")
    environ = {"BROADGAUGE_NODE_NAME": "n", "BROADGAUGE_ADDRESS_MAP": str(tmp_path / "map")}
    with pytest.raises(AddressMapError, match="map: not in UTF-8: invalid start byte, byte 9"):
        read_plans(environ)


def test_exit_code_and_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NODE_HOSTNAME", raising=False)
    monkeypatch.delenv("BROADGAUGE_NODE_NAME", raising=False)
    assert main() == 1
    assert capsys.readouterr().err.startswith("addresses: the node's name is not known\nhint: ")


def test_the_program_is_in_what_goes_into_a_pod(tmp_path: Path) -> None:
    """With all that it imports; `python3` there finds nothing else of ours."""
    archive = tmp_path / "broadgauge.zip"
    archive.write_bytes(bundle.build(bundle.POD_PARTS))
    ended = subprocess.run(
        [sys.executable, "-I", "-S", archive, "addresses"],
        env={"PATH": os.environ["PATH"], "BROADGAUGE_NODE_NAME": "n"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("addresses: /broadgauge/addresses/nodename_ip_mapping.yaml: No")
