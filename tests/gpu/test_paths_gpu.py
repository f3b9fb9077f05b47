"""Is every path between two GPUs the one that was asked for, as fast as it should be?

One run of the installed command gives all figures; they are printed: `pytest -m gpu -s
tests/gpu/test_paths_gpu.py`.
"""

import re
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from tests.e2e.driving import only_run, records_of, run_command

from broadgauge.catalog.paths import expect_path

pytestmark = [pytest.mark.gpu, pytest.mark.measuring, pytest.mark.timeout(900)]

PATHS = """\
name: paths
platform: local
cluster: {shapes: [1x2], device: cuda, backend: [nccl, gloo]}
networks:
  - {name: nvlink, path: nvlink}
  - {name: pcie, path: pcie}
  - {name: shm, path: shm}
  - {name: sockets, path: sockets}
workloads:
  - kind: collectives
    ops: [all_reduce]
    sizes: [512 MiB]
    min_iterations: 5
    max_iterations: 30
    budget_s: 500 ms
  - kind: collectives
    name: others
    ops: [all_gather, reduce_scatter, broadcast, reduce, all_to_all]
    sizes: [16 MiB]
    min_iterations: 3
    max_iterations: 10
    budget_s: 100 ms
  - kind: train
    model: {layers: 8, hidden: 1024, heads: 16, seq_len: 512}
    batch_per_rank: 4
    steps: 4
    warm_up_steps: 2
    block_steps: 2
    dtype: bfloat16
launches: 2
"""

ONE = """\
name: one
platform: {platform}
cluster: {{shapes: [1x2], device: cuda}}
networks:
  - name: {path}
    path: {path}
    environment: {environment}
workloads:
  - {{kind: collectives, ops: [all_reduce], sizes: [256 MiB], min_iterations: 10,
     max_iterations: 10}}
launches: 1
"""

Records = list[dict[str, Any]]


def show(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    folder = tmp_path_factory.mktemp("paths")
    (folder / "e.yaml").write_text(PATHS)
    ran = run_command("run", "e.yaml", folder=folder, timeout_s=800)
    show(ran.stdout, ran.stderr)
    found = records_of(only_run(folder))
    for record in found:
        path = record["path"] or {}
        rows = [(row["op"], round(row["busbw_gbyte_per_s"], 2)) for row in record["collectives"]]
        step_s = record["metrics"].get("step_time_s")
        show(record["workload"], record["network"], record["status"], path.get("used"), rows)
        show("   step", step_s, "channels", path.get("channels_count"), path.get("evidence"))
        show("   findings", [(f["rule"], f["symptom"]) for f in record["findings"]])
        if record["error"] is not None:
            show("   error", record["error"]["kind"], record["error"]["message"])
    return found


def of(records: Records, network: str, workload: str = "collectives") -> Records:
    found = [r for r in records if (r["network"], r["workload"]) == (network, workload)]
    assert len(found) == 2
    return found


def busbw_gbyte_per_s(records: Records, network: str) -> float:
    return fmean(r["collectives"][0]["busbw_gbyte_per_s"] for r in of(records, network))


def refused(records: Records) -> bool:
    """Was PCIe refused, as where NVLink joins the GPUs?"""
    return all(record["error"] is not None for record in of(records, "pcie"))


@pytest.mark.parametrize("network", ["nvlink", "shm", "sockets", "sockets/gloo"])
def test_the_path_used_is_the_one_asked_for(records: Records, network: str) -> None:
    for workload in ("collectives", "others", "train"):
        for record in of(records, network, workload):
            assert record["status"] == "ok", record["error"]
            assert record["path"]["used"] == network.removesuffix("/gloo")
            assert record["path"]["evidence"]
            assert all(row["is_correct"] for row in record["collectives"])


def test_pcie_is_refused_with_the_fix_or_verified(records: Records) -> None:
    for record in of(records, "pcie"):
        if not refused(records):
            assert record["path"]["used"] == "pcie"
            continue
        assert record["error"]["kind"] == "refused"
        assert record["status"] in ("failed", "skipped")  # refused once, it is not tried again
        assert "joined by NVLink" in record["error"]["message"]
        assert "NVreg_NvLinkDisable=1" in record["error"]["message"]


def test_nvlinks_own_counters_speak(records: Records) -> None:
    """They rise by the bytes of the all-reduces on NVLink, and by next to nothing elsewhere."""
    few = re.compile(r"did not move|rose by [\d.,]+ ([KM]i?)?B\b")
    for network in ("nvlink", "shm", "sockets"):
        for record in of(records, network):
            (line,) = [line for line in record["path"]["evidence"] if "NVLink's counters" in line]
            assert (few.search(line) is None) == (network == "nvlink"), line


@pytest.mark.parametrize("path", ["nvlink", "pcie", "shm", "sockets"])
def test_each_path_gives_what_the_catalog_expects(records: Records, path: str) -> None:
    if path == "pcie" and refused(records):
        return  # held by the test above
    for record in of(records, path):
        expected = expect_path(path, record["gpus"][0]["name"], 2)
        busbw = record["collectives"][0]["busbw_gbyte_per_s"]
        assert expected is not None or path == "pcie", f"{record['gpus'][0]['name']} is unknown"
        if expected is not None:
            assert expected.low_gbyte_per_s <= busbw <= expected.high_gbyte_per_s
        assert "path-expectation" not in [finding["rule"] for finding in record["findings"]]


def test_the_order_of_the_paths(records: Records) -> None:
    order = ["nvlink", "shm", "sockets"] if refused(records) else ["nvlink", "pcie", "sockets"]
    fast_to_slow = [busbw_gbyte_per_s(records, network) for network in order]
    assert fast_to_slow == sorted(fast_to_slow, reverse=True)
    assert fast_to_slow[0] > 3 * fast_to_slow[1] > 6 * fast_to_slow[2]
    assert 0 < busbw_gbyte_per_s(records, "sockets/gloo") < fast_to_slow[1]


def test_a_training_is_faster_the_faster_its_path(records: Records) -> None:
    step_s = {
        network: fmean(r["metrics"]["step_time_s"] for r in of(records, network, "train"))
        for network in ("nvlink", "shm", "sockets", "sockets/gloo")
    }
    assert step_s["nvlink"] < step_s["shm"] < step_s["sockets"]
    assert step_s["nvlink"] < step_s["sockets/gloo"]


def test_gpus_at_their_full_clock_are_not_called_throttled(records: Records) -> None:
    for record in records:
        for gpu in record["gpus"]:
            if gpu["sm_clock_mhz"] >= 0.95 * gpu["sm_clock_max_mhz"]:
                assert "gpu-throttled" not in [finding["rule"] for finding in record["findings"]]


def run_one(folder: Path, path: str, platform: str = "local", environment: str = "{}") -> Any:
    text = ONE.format(path=path, platform=platform, environment=environment)
    (folder / "e.yaml").write_text(text)
    ran = run_command("run", "e.yaml", folder=folder, timeout_s=300)
    (record,) = records_of(only_run(folder))
    show(platform, path, ran.returncode, record["status"], record["path"], record["error"])
    return record


@pytest.mark.namespaces
@pytest.mark.parametrize("path", ["nvlink", "shm", "sockets"])
def test_paths_of_one_emulated_node(path: str, empty_folder: Path) -> None:
    record = run_one(empty_folder, path, platform="emulated")
    assert record["status"] == "ok", record["error"]
    assert record["path"]["used"] == path


def test_a_planted_path_fails_its_case(empty_folder: Path) -> None:
    """The case says shared memory, its own variables let NCCL go peer to peer."""
    environment = '{NCCL_P2P_DISABLE: "0", NCCL_P2P_LEVEL: "SYS"}'
    record = run_one(empty_folder, "shm", environment=environment)
    assert (record["status"], record["error"]["kind"]) == ("failed", "refused")
    assert record["path"]["used"] != "shm"
    assert record["path"]["used"] in record["error"]["message"]
    assert any("P2P" in line for line in record["error"]["last_lines"])
