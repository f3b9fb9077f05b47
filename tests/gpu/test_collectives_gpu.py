"""Is every collective right over NCCL on two GPUs, from CUDA graphs too, and between pairs?"""

import itertools
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.e2e.driving import only_run, records_of, run_command

from broadgauge.specs.workloads.workload import CollectiveOp

pytestmark = [pytest.mark.gpu, pytest.mark.measuring, pytest.mark.timeout(900)]

SMALL, LARGE = 1000, 64 * 2**20
EVERY_OP = f"""\
name: every-op
platform: local
cluster: {{shapes: [1x2], device: cuda}}
workloads:
  - kind: collectives
    name: eager
    ops: [{", ".join(get_args(CollectiveOp))}]
    sizes: [{SMALL}, {LARGE}]
    dtypes: [float32, bfloat16]
    min_iterations: 20
    max_iterations: 40
    budget_s: 200 ms
  - kind: collectives
    name: graphs
    ops: [{", ".join(get_args(CollectiveOp))}]
    sizes: [{SMALL}, {LARGE}]
    dtypes: [float32, bfloat16]
    min_iterations: 20
    max_iterations: 40
    budget_s: 200 ms
    cuda_graphs: true
launches: 1
"""
PAIRS = """\
name: pairs
cluster: {shapes: [2x1], device: cuda}
networks: [{name: ethernet-10g, rate_gbps: 10 Gbit/s, mtu_bytes: 9000}]
workloads:
  - {kind: collectives, pairwise: true, sizes: [1 KiB, 64 MiB], min_iterations: 3, budget_s: 300 ms}
launches: 1
"""
Rows = dict[tuple[str, str, int], dict[str, Any]]


def ok_records(folder: Path, text: str) -> list[dict[str, Any]]:
    (folder / "e.yaml").write_text(text)
    ran = run_command("run", "e.yaml", folder=folder, timeout_s=800)
    assert ran.returncode == 0, ran.stderr
    return records_of(only_run(folder))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """By workload; then by op, data type and size, rounded up to the wanted one."""
    records = ok_records(tmp_path_factory.mktemp("every-op"), EVERY_OP)
    return {
        record["workload"]: {
            (row["op"], row["dtype"], SMALL if row["size_bytes"] <= SMALL else LARGE): row
            for row in record["collectives"]
        }
        for record in records
    }


@pytest.mark.parametrize("way", ["eager", "graphs"])
def test_every_op_is_right(rows: dict[str, Rows], way: str) -> None:
    ops, types = get_args(CollectiveOp), ("float32", "bfloat16")
    assert set(rows[way]) == set(itertools.product(ops, types, (SMALL, LARGE)))
    for key, row in rows[way].items():
        assert row["is_correct"] is True, key
        assert row["iterations"] >= 20, key


@pytest.mark.parametrize("op", get_args(CollectiveOp))
def test_a_graph_changes_nothing_in_the_time_of_large_messages(
    rows: dict[str, Rows], op: str
) -> None:
    """What fills the link does not wait for the host's calls."""
    eager, graph = (rows[way][op, "float32", LARGE]["time_median_s"] for way in ("eager", "graphs"))
    assert graph == pytest.approx(eager, rel=0.1)


def test_a_graph_takes_the_hosts_calls_out_of_small_messages(rows: dict[str, Rows]) -> None:
    for op in ("all_reduce", "all_gather", "send_recv"):
        graph = rows["graphs"][op, "float32", SMALL]["time_median_s"]
        assert graph <= 1.1 * rows["eager"][op, "float32", SMALL]["time_median_s"], op


@pytest.mark.namespaces
def test_each_way_between_two_nodes_fills_its_link(empty_folder: Path) -> None:
    (record,) = ok_records(empty_folder, PAIRS)
    found = [(r["from_rank"], r["to_rank"], r["size_bytes"]) for r in record["collectives"]]
    assert found == [(0, 1, 1024), (1, 0, 1024), (0, 1, LARGE), (1, 0, LARGE)]
    assert all(row["is_correct"] for row in record["collectives"])
    for row in record["collectives"][2:]:
        assert row["wire_bytes"] == pytest.approx(LARGE, rel=0.05)
        assert 0.9 <= row["link_rate_gbps"] / 10 <= 1.01
    assert record["metrics"]["slowest_pair_ratio"] is None
