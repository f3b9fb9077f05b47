"""Holds that one bad link of six is named, and that Gloo's bytes on the wire are those known."""

import itertools
import statistics
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.bytes_on_wire import assert_explained
from tests.e2e.driving import only_run, records_of, run_command

from broadgauge.catalog.traffic import gloo_node_bytes, ring_node_bytes
from broadgauge.specs.workloads.workload import CollectiveOp

pytestmark = [pytest.mark.measuring, pytest.mark.namespaces, pytest.mark.timeout(600)]

SLOW_PAIR = """\
name: slow-pair
cluster: {shapes: [4x1], device: cpu}
networks:
  - name: ethernet
    rate_gbps: 200 Mbit/s
    slow_pairs: [{nodes: [1, 3], rate_ratio: 0.4}]
workloads:
  - {kind: collectives, pairwise: true, sizes: [1 MiB], budget_s: 300 ms, min_iterations: 3}
launches: 1
"""

EVERY_OP = """\
name: every-op
cluster: {shapes: [2x1, 4x1, 2x2], device: cpu}
networks: [{name: ethernet, rate_gbps: 400 Mbit/s}]
workloads:
  - kind: collectives
    ops: [all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, send_recv]
    sizes: [1 MiB]
    min_iterations: 3
    max_iterations: 3
launches: 1
"""
HEADERS_RATIO = 1514 / 1448
"""Of a full frame at MTU 1500."""


def ok_records(folder: Path, text: str) -> list[dict[str, Any]]:
    (folder / "e.yaml").write_text(text)
    ran = run_command("run", "e.yaml", folder=folder, timeout_s=500)
    assert ran.returncode == 0, ran.stderr
    return records_of(only_run(folder))


@pytest.fixture(scope="module")
def slow_pair(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The only record."""
    (record,) = ok_records(tmp_path_factory.mktemp("slow-pair"), SLOW_PAIR)
    return record


def by_way(record: dict[str, Any]) -> dict[tuple[int, int], dict[str, Any]]:
    return {(row["from_rank"], row["to_rank"]): row for row in record["collectives"]}


@pytest.mark.measured
@pytest.mark.slow
def test_every_pair_is_measured_and_correct(slow_pair: dict[str, Any]) -> None:
    rows = by_way(slow_pair)
    assert set(rows) == set(itertools.permutations(range(4), 2))
    assert all(row["is_correct"] for row in rows.values())


@pytest.mark.measured
@pytest.mark.slow
def test_one_of_six_pairs_at_40_percent_of_the_rate_is_named(slow_pair: dict[str, Any]) -> None:
    rates = {
        way: row["size_bytes"] / row["time_median_s"] for way, row in by_way(slow_pair).items()
    }
    middle = statistics.median(rates.values())
    for way in ((1, 3), (3, 1)):
        assert rates.pop(way) / middle == pytest.approx(0.4, rel=0.15)
    assert min(rates.values()) > 0.75 * middle
    assert slow_pair["metrics"]["slowest_pair_ratio"] == pytest.approx(0.4, rel=0.15)
    found = [finding for finding in slow_pair["findings"] if finding["rule"] == "slow-pair"]
    assert len(found) == 1
    assert found[0]["symptom"].startswith("node 1 to node 3 and back is slow: ")


@pytest.mark.thorough
def test_gloos_bytes_are_those_known_of_each_op(empty_folder: Path) -> None:
    records = ok_records(empty_folder, EVERY_OP)
    checked = set()
    for record in records:
        nodes, ranks_per_node = map(int, record["shape"].split("x"))
        for row in record["collectives"]:
            op, size_bytes = row["op"], row["size_bytes"]
            arguments = (op, nodes * ranks_per_node, size_bytes)
            where = (record["shape"], op)
            assert_explained(
                row["wire_bytes"],
                gloo_node_bytes(*arguments, ranks_per_node=ranks_per_node) * HEADERS_RATIO,
                num_retransmits=record["metrics"]["retransmits_count"] / row["iterations"],
                where=where,
            )
            ring_bytes = ring_node_bytes(*arguments, ranks_per_node=ranks_per_node)
            expected = pytest.approx(row["wire_bytes"] / ring_bytes)
            assert row["amplification_ratio"] == expected, where
            assert row["is_correct"], where
            checked.add(where)
    assert checked == set(itertools.product(("2x1", "4x1", "2x2"), get_args(CollectiveOp)))
