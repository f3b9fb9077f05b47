"""Holds on two GPUs: NCCL over emulated nodes and NVLink, our timing against the plainest one."""

import statistics
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import only_run, records_of, run_command

pytestmark = [pytest.mark.gpu, pytest.mark.measuring, pytest.mark.timeout(900)]

AGAINST_RAW = """\
name: against-raw
platform: local
cluster: {{shapes: [1x2], device: cuda}}
workloads:
  - kind: collectives
    ops: [all_reduce]
    sizes: [256 MiB]
    min_iterations: 40
    max_iterations: 40
  - kind: command
    command: ["{script}"]
    metrics: [{{name: raw_time_s, json_key: raw_time_s}}]
launches: 5
"""

LINE_RATE = """\
name: line-rate
cluster: {shapes: [2x1], device: cuda}
networks: [{name: ethernet-10g, rate_gbps: 10 Gbit/s, mtu_bytes: 9000}]
workloads:
  - {kind: collectives, ops: [all_reduce], sizes: [256 MiB], min_iterations: 5, max_iterations: 5}
launches: 3
"""


def ok_records(folder: Path, text: str) -> list[dict[str, Any]]:
    (folder / "e.yaml").write_text(text)
    ran = run_command("run", "e.yaml", folder=folder, timeout_s=600)
    assert ran.returncode == 0, ran.stderr
    return records_of(only_run(folder))


def test_all_reduce_over_nvlink_is_the_raw_calls_within_2_percent(empty_folder: Path) -> None:
    script = Path(__file__).with_name("raw_all_reduce.py")
    records = ok_records(empty_folder, AGAINST_RAW.format(script=script))
    ours = [r["collectives"][0]["time_s"] for r in records if r["workload"] == "collectives"]
    raw = [r["metrics"]["raw_time_s"] for r in records if r["workload"] == "command"]
    assert statistics.median(ours) == pytest.approx(statistics.median(raw), rel=0.02)


@pytest.mark.namespaces
def test_a_10_gbit_link_reaches_97_percent_of_its_line_rate(empty_folder: Path) -> None:
    records = ok_records(empty_folder, LINE_RATE)
    shares = [record["metrics"]["line_share_ratio"] for record in records]
    assert 0.97 <= statistics.median(shares) <= 1.01
    assert all(record["collectives"][0]["is_correct"] for record in records)


@pytest.mark.namespaces
def test_the_quickstart_runs_over_nccl_and_the_slow_network_is_the_limit(
    empty_folder: Path,
) -> None:
    arguments = ("run", "quickstart", "--set", "launches=3", "--set")
    shapes = "cluster.shapes=[1xauto, 2xauto, 1xall]"
    ran = run_command(*arguments, shapes, folder=empty_folder, timeout_s=800)
    assert ran.returncode == 0, ran.stderr
    records = records_of(only_run(empty_folder))
    trains = [record for record in records if record["workload"] == "train"]

    def step_s(network: str, shape: str) -> float:
        return statistics.median(
            record["metrics"]["step_time_s"]
            for record in trains
            if record["network"] == network and record["shape"] == shape
        )

    assert step_s("pod-like", "2x1") > step_s("vnic-like", "2x1") > step_s("reference", "2x1")
    assert step_s("reference", "2x1") > step_s("one node", "1x2")
    shown = run_command("show", "last", folder=empty_folder)
    assert "network-bound" in shown.stdout
