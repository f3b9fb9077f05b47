"""Holds 1, 2, 4 and 8 nodes, tunnels and several NICs: the counters' bytes are those known.

MTU 9000 keeps the headers at 0.7 %; the messages are large enough that acknowledgements and the
barriers, whose bytes are taken off, are small beside them.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import only_run, records_of, run_command
from tests.sharding import one_of

from broadgauge.catalog.traffic import ring_node_bytes
from broadgauge.specs.network import VXLAN_HEADER_BYTES, payload_rate_gbps

pytestmark = [
    pytest.mark.measured,
    pytest.mark.measuring,
    pytest.mark.namespaces,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

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


def ok_records(folder: Path, text: str) -> tuple[list[dict[str, Any]], str]:
    (folder / "e.yaml").write_text(text)
    ran = run_command("run", "e.yaml", folder=folder, timeout_s=800)
    assert ran.returncode == 0, ran.stderr
    records = records_of(only_run(folder))
    assert {record["status"] for record in records} == {"ok"}
    return records, ran.stderr + ran.stdout


@pytest.mark.parametrize("shapes", one_of([("1x2", "2x1", "4x1"), ("8x1",)], ("1x2", "2x1", "4x1")))
def test_the_bytes_of_nodes_are_the_rings(empty_folder: Path, shapes: tuple[str, ...]) -> None:
    """Gloo's all_reduce is a ring: 2(n - 1)/n of the size leave each node and enter it."""
    text = NODES.replace("SHAPES", f"[{', '.join(shapes)}]")
    records, said = ok_records(empty_folder, text)
    assert tuple(record["shape"] for record in records) == shapes
    for record in records:
        [row] = record["collectives"]
        assert row["is_correct"]
        num_nodes = len(record["nodes"])
        assert num_nodes == int(record["shape"].split("x")[0])
        if num_nodes == 1:
            assert row["wire_bytes"] is None
            assert record["nodes"][0]["tx_bytes"] is None
            continue
        ring_bytes = ring_node_bytes("all_reduce", num_nodes, row["size_bytes"], ranks_per_node=1)
        assert row["wire_bytes"] == pytest.approx(ring_bytes, rel=0.05), record["shape"]
        in_all = ring_bytes * row["iterations"]
        for node in record["nodes"]:
            # With the barriers' bytes in it: no node sends less than its part, or much more.
            assert in_all <= node["tx_bytes"] <= 1.1 * in_all
            assert in_all <= node["rx_bytes"] <= 1.1 * in_all
    num_nodes = int(shapes[-1].split("x")[0])
    if len(os.sched_getaffinity(0)) < num_nodes:
        assert f"{num_nodes} nodes share" in said


def test_tunnels_and_nics_carry_the_same_bytes(empty_folder: Path) -> None:
    records, said = ok_records(empty_folder, KINDS)
    by_network = {record["network"]: record for record in records}
    assert len({record["launch_id"] for record in records}) == 4
    assert by_network["three"]["launch_id"] == by_network["three-slower"]["launch_id"]
    for name, mtu, overlay_bytes in (
        ("one", 9000, 0),
        ("three", 9000, 0),
        ("three-slower", 1500, 0),
        ("pod", 9000, VXLAN_HEADER_BYTES),
        ("pods", 1500, VXLAN_HEADER_BYTES),
    ):
        [row] = by_network[name]["collectives"]
        on_the_wire = row["size_bytes"] / payload_rate_gbps(1.0, mtu, overlay_bytes)
        assert row["wire_bytes"] == pytest.approx(on_the_wire, rel=0.05), name
        assert row["is_correct"]
    for name, devices in (("one", 1), ("three", 3), ("three-slower", 3), ("pod", 1), ("pods", 2)):
        for node in by_network[name]["nodes"]:
            nics = node["nics"]
            assert [nic["name"] for nic in nics] == [f"eth{number}" for number in range(devices)]
            for counted in ("tx_bytes", "rx_bytes", "drops_count"):
                assert sum(nic[counted] for nic in nics) == node[counted]
            assert min(nic["tx_bytes"] for nic in nics) > 0
    # Gloo takes the NICs in turn, one operation each. Every second one is a barrier, so three NICs
    # have two of six messages each, and of two NICs one has them all.
    for name in ("three", "three-slower"):
        for node in by_network[name]["nodes"]:
            for nic in node["nics"]:
                assert nic["tx_bytes"] == pytest.approx(node["tx_bytes"] / 3, rel=0.05)
    assert "Gloo sends each operation over one of the 3 NICs, in turn" in said


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
