"""Proves agent/pod/addresses.py: the init container, by the zip file, in real namespaces."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.agent.pod.mapped_fabric import NUM_PODS, mapped

from broadgauge.agent import bundle
from broadgauge.agent.pod.address_map import AddressMapError
from broadgauge.agent.pod.addresses import main, read_plan

LIMIT_S = 120
WITHOUT_CAPABILITIES = (
    *("unshare", "-rn", "setpriv"),
    *("--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"),
)
needs_namespaces = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not (shutil.which("unshare") and shutil.which("ip")), reason="no unshare"),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("fabric")
    archive = folder / "broadgauge.zip"
    archive.write_bytes(bundle.build())
    ended = subprocess.run(
        ["unshare", "-rn", sys.executable, "-m", "tests.agent.pod.mapped_fabric", archive, folder],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


class TestOnAFabric:
    pytestmark = needs_namespaces

    def test_all_reach_all_after_the_map_and_not_before(self, told: dict[str, Any]) -> None:
        everyone = [mapped(number) for number in range(NUM_PODS)]
        assert told["before"] == [[]] * NUM_PODS
        assert told["after"] == [everyone] * NUM_PODS

    def test_what_was_changed_is_printed(self, told: dict[str, Any]) -> None:
        assert [(code, err) for code, _, err in told["first"]] == [(0, "")] * NUM_PODS
        assert told["first"][0][1].splitlines() == [
            "net1: address 192.168.7.1/24 removed",
            "net1: address 10.249.65.4/24 added",
            "net1: 7 routes, 7 added, 0 removed",
        ]

    def test_a_second_run_changes_nothing(self, told: dict[str, Any]) -> None:
        assert told["again"][0] == [
            0,
            "net1: address 10.249.65.4/24 is there\nnet1: 7 routes, 0 added, 0 removed\n",
            "",
        ]
        assert told["state_again"] == told["state"]
        assert told["state"][1].count("metric 150") == 7

    def test_a_changed_map_takes_away_what_is_gone(self, told: dict[str, Any]) -> None:
        assert told["changed"][0][1].splitlines()[-1] == "net1: 3 routes, 1 added, 5 removed"
        assert told["changed"][1][1].splitlines()[:2] == [
            "net1: address 10.249.66.5/24 removed",
            "net1: address 10.249.66.55/24 added",
        ]
        assert "10.249.66.55 " in told["state_changed"][1]
        assert "10.249.66.5 " not in told["state_changed"][1]

    def test_an_interface_that_is_not_there(self, told: dict[str, Any]) -> None:
        assert told["absent"][0] == [
            1,
            "",
            "addresses: net7 is not in this pod: net1\n"
            "hint: name those that it has: BROADGAUGE_ADDRESS_INTERFACES=net1,net2\n",
        ]


APPLY = """
import ipaddress, sys
sys.path.insert(0, sys.argv[1])
from broadgauge.agent.pod.address_map import AddressMapError, InterfacePlan
from broadgauge.agent.pod.addresses import apply

address = ipaddress.IPv4Interface("10.255.0.1/24")
try:
    apply(InterfacePlan(interface="lo", address=address, routes=()), print)
except AddressMapError as error:
    print(error)
"""
"""A map may not name the loopback, which is the one interface that is everywhere."""


@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv")
@pytest.mark.namespaces
def test_without_the_capability(tmp_path: Path) -> None:
    """Root of a namespace whose capabilities are dropped, as a pod's are."""
    archive = tmp_path / "broadgauge.zip"
    archive.write_bytes(bundle.build())
    ended = subprocess.run(
        [*WITHOUT_CAPABILITIES, sys.executable, "-I", "-S", "-c", APPLY, archive],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (ended.stdout, ended.stderr) == (
        "lo: no right to change addresses: Operation not permitted\n"
        "hint: the init container needs securityContext.capabilities.add: [NET_ADMIN]\n",
        "",
    )


def test_variables(tmp_path: Path) -> None:
    names = tmp_path / "map.yaml"
    names.write_text("n:e:net1:10.0.0.1\nn:f:net2:10.0.1.1\nm:e:net1:10.0.0.2\n")
    environ = {"BROADGAUGE_ADDRESS_MAP": str(names), "NODE_HOSTNAME": "n"}
    assert [plan.interface for plan in read_plan(environ)] == ["net1", "net2"]
    only = environ | {"BROADGAUGE_ADDRESS_INTERFACES": " net2,"}
    assert [plan.interface for plan in read_plan(only)] == ["net2"]
    named = environ | {"BROADGAUGE_NODE_NAME": "m"}
    assert [str(plan.address) for plan in read_plan(named)] == ["10.0.0.2/24"]
    with pytest.raises(AddressMapError, match="the node's name is not known"):
        read_plan({"BROADGAUGE_ADDRESS_MAP": str(names)})
    with pytest.raises(AddressMapError, match="No such file or directory"):
        read_plan({"BROADGAUGE_NODE_NAME": "n", "BROADGAUGE_ADDRESS_MAP": str(tmp_path / "x")})


def test_a_map_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "map").write_bytes(b"\xff\xfe")
    environ = {"BROADGAUGE_NODE_NAME": "n", "BROADGAUGE_ADDRESS_MAP": str(tmp_path / "map")}
    with pytest.raises(AddressMapError, match="utf-8"):
        read_plan(environ)


def test_exit_code_and_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NODE_HOSTNAME", raising=False)
    monkeypatch.delenv("BROADGAUGE_NODE_NAME", raising=False)
    assert main() == 1
    assert capsys.readouterr().err.startswith("addresses: the node's name is not known\nhint: ")
