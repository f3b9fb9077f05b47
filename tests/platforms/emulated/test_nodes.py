"""Is a node a machine of its own, a rank in it powerless, and is all gone when PID 1 dies?"""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.own_machine import interfaces, mounts

from broadgauge.agent.emulated.addresses import rank_address
from broadgauge.agent.emulated.nodes import plan_nodes
from broadgauge.messages.limits import MAX_NICS_PER_NODE, MAX_NODES


@pytest.fixture(params=[1, 2])
def ranks(request: pytest.FixtureRequest, run_case: Any) -> Any:
    return run_case("ranks", nics_per_node=request.param) | {"nics_per_node": request.param}


@pytest.mark.namespaces
def test_rank_is_its_user_and_has_no_power(ranks: Any) -> None:
    for seen in ranks["seen"]:
        assert [seen["uid"], seen["gid"]] == ranks["ids"]
        assert {int(mask, 16) for mask in seen["capabilities"]} == {0}
        assert seen["no_new_privs"] == "1"
    assert ranks["tampering"].strip() == "1"  # EPERM


@pytest.mark.namespaces
def test_node_is_a_machine_of_its_own(ranks: Any) -> None:
    first, second = ranks["seen"]
    own_nics = ["eth0", "eth1"][: ranks["nics_per_node"]]
    assert [first["hostname"], second["hostname"]] == ["node0", "node1"]
    for seen in (first, second):
        assert seen["nics"] == [*own_nics, "lo"]
        assert seen["resolved"] == ["10.80.0.1", "10.80.0.2", "127.0.0.1"]
        assert seen["resolv_conf"] == ""
        assert seen["ipv6"] == ""
        assert seen["cwd"] == ranks["cwd"]
        assert seen["affinity"] == [0]
        assert seen["is_batch"]
        assert seen["rehash"] in ("0", ""), "a flow stays on its core, also after a time-out"
        destinations = {line.split()[1] for line in seen["routes"]}
        assert "00000000" not in destinations
        assert len(destinations) == ranks["nics_per_node"]
    assert (first["shm"], second["shm"]) == (["only-here"], [])
    assert ranks["warnings"] == []


@pytest.mark.measured
@pytest.mark.namespaces
def test_ceiling_of_a_link_is_measured(run_case: Any, judgement: Any) -> None:
    answer = run_case("ceiling")
    figure = f"{answer['stream']['payload_gbps']:.1f} Gbit/s"
    judgement(verdict="unshaped", figure=figure, bound="0.5 Gbit/s and more")
    assert answer["stream"]["payload_gbps"] > 0.5
    assert 0.25 < answer["stream"]["duration_s"] < 0.5
    assert answer["num_streams"] == 3


@pytest.mark.namespaces
def test_probes_of_a_link_count_every_byte_and_time_the_way(run_case: Any) -> None:
    answer = run_case("probed", payload_bytes=1_000_003)
    assert answer["sent"]["payload_bytes"] == 1_000_003
    assert answer["sent"]["num_streams"] == 1
    assert answer["sent"]["payload_gbps"] >= 0, "all may have waited when the count began"
    assert answer["round_trip_time_s"] > 1e-6


@pytest.mark.namespaces
def test_a_side_that_fails_ends_the_probe_and_says_why(run_case: Any) -> None:
    answer = run_case("failing_side")
    cannot_listen, cannot_enter = answer["said"][:3], answer["said"][3:]
    assert all("Cannot assign requested address" in said for said in cannot_listen)
    assert all("Bad file descriptor" in said for said in cannot_enter)
    assert len(cannot_enter) == 3
    assert answer["children"] == []


@pytest.mark.namespaces
def test_no_packet_overtakes_another(run_case: Any) -> None:
    """Nodes that send and receive at once, each on a core of its own: acknowledgements and the
    shaper's timer then send from both cores. Where another program's flood fills a core's backlog,
    what is dropped there comes later, too: that is a loss, and no overtaking."""
    answer = run_case("late_packets", num_messages=2000)
    assert answer["dropped"] or answer["late"] == [0, 0], answer


@pytest.mark.namespaces
def test_eight_nodes_are_built(run_case: Any, record_property: Any) -> None:
    seconds = run_case("build_time", num_nodes=8)
    record_property("build_time_s", seconds)
    assert seconds > 0


@pytest.mark.namespaces
def test_nothing_is_left_when_pid_1_is_killed(start_case: Any) -> None:
    before = interfaces(), mounts()
    child = start_case("linger")
    pid = json.loads(child.stdout.readline())["pid"]
    namespace = json.loads(child.stdout.readline())["namespaces"]
    assert _holders(namespace)
    os.kill(pid, signal.SIGKILL)
    child.wait(timeout=60)
    deadline = time.monotonic() + 60
    while _holders(namespace) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _holders(namespace) == []
    assert (interfaces(), mounts()) == before


def test_plans_are_checked() -> None:
    with pytest.raises(ValueError, match="hint"):
        plan_nodes(0)
    with pytest.raises(ValueError, match="hint"):
        plan_nodes(2, [(0,)])


def test_addresses_never_collide() -> None:
    """Also with four times the nodes and NICs that there may be."""
    nodes, nics = range(4 * MAX_NODES), range(4 * MAX_NICS_PER_NODE)
    addresses = {
        rank_address(node, nic, has_overlay=has_overlay)
        for node in nodes
        for nic in nics
        for has_overlay in (False, True)
    }
    assert len(addresses) == 2 * len(nodes) * len(nics)


def _holders(namespace: str) -> list[str]:
    """Processes in this network namespace, by pid."""
    found = []
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            if str(link.readlink()) == namespace:
                found.append(link.parts[2])
        except OSError:
            continue
    return found
