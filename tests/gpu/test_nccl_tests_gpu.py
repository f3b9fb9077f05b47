"""Does nccl-tests say the same as torch of two GPUs, over NVLink and over an emulated network?"""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import only_run, records_of, run_command

from broadgauge.probes.nccl_tests.programs import HOME_VARIABLE, find_program
from broadgauge.probes.trial import RefusedError


def missing_programs() -> str | None:
    try:
        for op in ("all_reduce", "all_gather", "send_recv"):
            find_program(op, os.environ)
    except RefusedError as error:
        return str(error)
    return None


pytestmark = [
    pytest.mark.gpu,
    pytest.mark.measuring,
    pytest.mark.timeout(900),
    pytest.mark.skipif(missing_programs() is not None, reason=f"nccl-tests: {HOME_VARIABLE}"),
]
NETWORK = "networks: [{name: ethernet-10g, rate_gbps: 10 Gbit/s, mtu_bytes: 9000}]"
LARGE = 64 * 2**20

Rows = dict[tuple[str, str, int], list[dict[str, Any]]]


def measured(folder: Path, platform: str, shape: str, networks: str) -> tuple[Rows, list[Any]]:
    """Both engines' rows by engine, op and size, of two launches each; and the records."""
    (folder / "e.yaml").write_text(experiment(platform, shape, networks))
    ran = run_command("run", "e.yaml", folder=folder, timeout_s=800)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    records = records_of(only_run(folder))
    rows: Rows = {}
    for record in records:
        assert record["status"] == "ok", record["error"]
        for row in record["collectives"]:
            rows.setdefault((row.get("engine", "torch"), row["op"], row["size_bytes"]), []).append(
                row
            )
    assert all(row["is_correct"] for same in rows.values() for row in same)
    return rows, records


def experiment(platform: str, shape: str, networks: str) -> str:
    workload = (
        "  - {{kind: collectives, name: by-{engine}, engine: {engine}, "
        "ops: [all_reduce, all_gather, send_recv], sizes: [64 KiB, 64 MiB], "
        "min_iterations: 10, max_iterations: 20}}"
    )
    return "\n".join(
        [
            "name: two-engines",
            f"platform: {platform}",
            f"cluster: {{shapes: [{shape}], device: cuda}}",
            networks,
            "workloads:",
            *(workload.format(engine=engine) for engine in ("torch", "nccl-tests")),
            "launches: 2",
        ]
    )


def ratio(rows: Rows, op: str) -> float:
    """nccl-tests' busbw over torch's, of the large message, best of two each."""
    best = {
        engine: max(row["busbw_gbyte_per_s"] for row in rows[engine, op, LARGE])
        for engine in ("torch", "nccl-tests")
    }
    return best["nccl-tests"] / best["torch"]


def test_both_find_nvlink_equally_fast(empty_folder: Path) -> None:
    rows, _ = measured(empty_folder, "local", "1x2", "")
    for op in ("all_reduce", "all_gather", "send_recv"):
        assert ratio(rows, op) == pytest.approx(1, abs=0.1), op


@pytest.mark.namespaces
def test_both_fill_a_10_gbit_link_with_the_ring_s_bytes(empty_folder: Path) -> None:
    """Bytes by counters are those of the timed iterations: all else that nccl-tests sends (warm-up,
    in place, its check) is as much again three times."""
    rows, records = measured(empty_folder, "emulated", "2x1", NETWORK)
    for op in ("all_reduce", "all_gather", "send_recv"):
        assert ratio(rows, op) == pytest.approx(1, abs=0.05), op
        for row in rows["nccl-tests", op, LARGE]:
            assert row["amplification_ratio"] == pytest.approx(1, abs=0.05), op
            assert row["time_min_s"] == row["time_s"] == row["time_max_s"]
    shares = [r["metrics"]["line_share_ratio"] for r in records if r["workload"] == "by-nccl-tests"]
    assert len(shares) == 2
    assert all(0.95 <= share <= 1.01 for share in shares)
