"""Holds 1, 2, 4 and 8 nodes, tunnels and several NICs: the counters' bytes are those known.

Scripted ranks send what is known over plain TCP, over each NIC as much. That Gloo sends its rings
is counted with real ranks, which take long to start: thorough here, and each op on two and on four
ranks in tests/probes/test_wire_bytes.py. MTU 9000 keeps the headers at 0.7 %.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.bytes_on_wire import FRAME_BYTES, assert_explained
from tests.e2e.driving import COMMAND, WITHOUT_TORCH, only_run, records_of, run_command

from broadgauge.catalog.traffic import ring_node_bytes
from broadgauge.messages.payload import (
    ETHERNET_HEADER_BYTES,
    VXLAN_HEADER_BYTES,
    payload_rate_gbps,
)
from broadgauge.specs.networks.network import Network
from broadgauge.specs.text.reading import read_experiment

pytestmark = [pytest.mark.namespaces, pytest.mark.timeout(900)]

NODES = """\
name: nodes
cluster: {shapes: SHAPES, device: cpu, cores_per_node: 1}
networks: [{name: wide, rate_gbps: 1 Gbit/s, mtu_bytes: 9000}]
workloads:
  - {kind: collectives, ops: [all_reduce], sizes: [2 MiB], min_iterations: 3, max_iterations: 3}
launches: 1
"""

KINDS = """\
name: kinds
cluster: {shapes: [2x1], device: cpu}
networks:
  - {name: one, rate_gbps: 400 Mbit/s, mtu_bytes: 9000}
  - {name: three, rate_gbps: 400 Mbit/s, mtu_bytes: 9000, nics_per_node: 3}
  - {name: three-slower, rate_gbps: 200 Mbit/s, receive_rate_gbps: 100 Mbit/s, nics_per_node: 3}
  - {name: pod, rate_gbps: 400 Mbit/s, overlay: vxlan, mtu_bytes: 9000}
  - {name: pods, rate_gbps: 200 Mbit/s, overlay: vxlan, mtu_bytes: 1500, nics_per_node: nodes}
workloads:
  - {kind: collectives, ops: [all_reduce], sizes: [1 MiB], min_iterations: 6, max_iterations: 6}
launches: 1
"""
"""Four lives of ranks: `three-slower` is reshaped to under those of `three`."""


def networks_of(text: str) -> dict[str, Network]:
    networks = read_experiment(text.replace("SHAPES", "[2x1]"), "e.yaml").networks
    return {network.name: network for network in networks if isinstance(network, Network)}


WIDE = networks_of(NODES)["wide"]
KINDS_BY_NAME = networks_of(KINDS)
DEVICES = {"one": 1, "three": 3, "three-slower": 3, "pod": 1, "pods": 2}


def ok_records(
    folder: Path, text: str, command: tuple[str, ...] = COMMAND, **environment: str
) -> tuple[list[dict[str, Any]], str]:
    (folder / "e.yaml").write_text(text)
    ran = run_command("run", "e.yaml", folder=folder, timeout_s=800, command=command, **environment)
    assert ran.returncode == 0, ran.stderr
    records = records_of(only_run(folder))
    assert {record["status"] for record in records} == {"ok"}
    return records, ran.stderr + ran.stdout


def ring_bytes_of(record: dict[str, Any]) -> float:
    """Gloo's all_reduce is a ring: 2(n - 1)/n of the size leave each node and enter it."""
    [row] = record["collectives"]
    num_nodes = len(record["nodes"])
    return ring_node_bytes("all_reduce", num_nodes, row["size_bytes"], ranks_per_node=1)


def star_bytes_of(record: dict[str, Any], node: int) -> float:
    """What scripted ranks send: each as much to rank 0 as it gets from there."""
    [row] = record["collectives"]
    return row["size_bytes"] * (len(record["nodes"]) - 1 if node == 0 else 1)


def assert_row_explained(record: dict[str, Any], sent_bytes: float, network: Network) -> None:
    """An iteration's bytes on the wire, the busiest node's."""
    [row] = record["collectives"]
    assert row["is_correct"]
    overlay_bytes = VXLAN_HEADER_BYTES if network.overlay else 0
    assert_explained(
        row["wire_bytes"],
        sent_bytes / payload_rate_gbps(1.0, network.mtu_bytes, overlay_bytes),
        num_retransmits=record["metrics"]["retransmits_count"] / row["iterations"],
        segment_bytes=network.mtu_bytes + ETHERNET_HEADER_BYTES,
        where=record["network"],
    )


def assert_nodes_complete(records: list[dict[str, Any]], said: str) -> None:
    """Each shape has its nodes; one node alone has no link, and many are said to share cores."""
    for record in records:
        [row] = record["collectives"]
        assert row["is_correct"]
        num_nodes = len(record["nodes"])
        assert num_nodes == int(record["shape"].split("x")[0])
        if num_nodes == 1:
            assert row["wire_bytes"] is None
            assert record["nodes"][0]["tx_bytes"] is None
    most = max(len(record["nodes"]) for record in records)
    if len(os.sched_getaffinity(0)) < most:
        assert f"{most} nodes share" in said


def test_each_nodes_bytes_are_those_it_sent(empty_folder: Path) -> None:
    shapes = ("1x2", "2x1", "4x1")
    text = NODES.replace("SHAPES", f"[{', '.join(shapes)}]")
    records, said = ok_records(empty_folder, text, WITHOUT_TORCH, SENDS="yes")
    assert tuple(record["shape"] for record in records) == shapes
    assert_nodes_complete(records, said)
    for record in records[1:]:
        assert_row_explained(record, star_bytes_of(record, 0), WIDE)
        [row] = record["collectives"]
        for node in record["nodes"]:
            in_all = star_bytes_of(record, node["node"]) * row["iterations"]
            for counted in ("tx_bytes", "rx_bytes"):
                # Its own retransmits and those that it receives.
                assert_explained(
                    node[counted],
                    in_all,
                    num_retransmits=record["metrics"]["retransmits_count"],
                    segment_bytes=9000 + ETHERNET_HEADER_BYTES,
                )


def test_tunnels_and_nics_are_counted_one_by_one(empty_folder: Path) -> None:
    records, said = ok_records(empty_folder, KINDS, WITHOUT_TORCH, SENDS="yes")
    by_network = assert_kinds_complete(records, said)
    for name, network in KINDS_BY_NAME.items():
        record = by_network[name]
        [row] = record["collectives"]
        num_nics = DEVICES[name]
        assert_row_explained(record, num_nics * row["size_bytes"], network)
        for node in record["nodes"]:
            for nic in node["nics"]:
                assert nic["tx_bytes"] >= row["size_bytes"] * row["iterations"]


def assert_kinds_complete(records: list[dict[str, Any]], said: str) -> dict[str, dict[str, Any]]:
    """Lives of ranks, devices and their sums. The records by network."""
    by_network = {record["network"]: record for record in records}
    assert by_network.keys() == KINDS_BY_NAME.keys()
    assert len({record["launch_id"] for record in records}) == 4
    assert by_network["three"]["launch_id"] == by_network["three-slower"]["launch_id"]
    for name, num_devices in DEVICES.items():
        for node in by_network[name]["nodes"]:
            nics = node["nics"]
            assert [nic["name"] for nic in nics] == [f"eth{i}" for i in range(num_devices)]
            for counted in ("tx_bytes", "rx_bytes", "drops_count"):
                assert sum(nic[counted] for nic in nics) == node[counted]
            assert min(nic["tx_bytes"] for nic in nics) > 0
    assert "Gloo sends each operation over one of the 3 NICs, in turn" in said
    return by_network


@pytest.mark.thorough
@pytest.mark.measuring
@pytest.mark.parametrize("shapes", [("1x2", "2x1", "4x1"), ("8x1",)], ids=" ".join)
def test_the_bytes_of_nodes_are_the_rings(empty_folder: Path, shapes: tuple[str, ...]) -> None:
    text = NODES.replace("SHAPES", f"[{', '.join(shapes)}]")
    records, said = ok_records(empty_folder, text)
    assert tuple(record["shape"] for record in records) == shapes
    assert_nodes_complete(records, said)
    for record in records:
        if len(record["nodes"]) > 1:
            assert_row_explained(record, ring_bytes_of(record), WIDE)


@pytest.mark.thorough
@pytest.mark.measuring
def test_tunnels_and_nics_carry_the_same_bytes(empty_folder: Path) -> None:
    records, said = ok_records(empty_folder, KINDS)
    by_network = assert_kinds_complete(records, said)
    for name, network in KINDS_BY_NAME.items():
        assert_row_explained(by_network[name], ring_bytes_of(by_network[name]), network)
    # Gloo takes the NICs in turn, one operation each. Every second one is a barrier, so three NICs
    # have two of six messages each, and of two NICs one has them all.
    for name in ("three", "three-slower"):
        again = by_network[name]["metrics"]["retransmits_count"] * FRAME_BYTES * 6
        for node in by_network[name]["nodes"]:
            for nic in node["nics"]:
                off = abs(nic["tx_bytes"] - node["tx_bytes"] / 3)
                assert off <= 0.05 * node["tx_bytes"] / 3 + again


@pytest.mark.measured
@pytest.mark.measuring
@pytest.mark.slow
def test_the_slower_direction_is_the_limit(empty_folder: Path) -> None:
    """A tenth of the rate towards the nodes: a message takes ten times as long."""
    text = KINDS.split("networks:", maxsplit=1)[0] + (
        "networks:\n"
        "  - {name: even, rate_gbps: 500 Mbit/s}\n"
        "  - {name: uneven, rate_gbps: 500 Mbit/s, receive_rate_gbps: 50 Mbit/s}\n"
        "workloads:\n"
        "  - {kind: collectives, ops: [all_reduce], sizes: [4 MiB], max_iterations: 5}\n"
        "launches: 1\n"
    )
    records, _ = ok_records(empty_folder, text)
    even, uneven = (record["collectives"][0]["time_min_s"] for record in records)
    assert uneven > 4 * even
    line_s = records[1]["collectives"][0]["wire_bytes"] * 8 / 50e6
    assert uneven == pytest.approx(line_s, rel=0.15)
