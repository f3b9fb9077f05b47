"""Holds the main job: the quickstart runs for real, agrees with physics, and ends in a report."""

import csv
import io
import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest
from tests.disturbance import says_that_cores_were_stolen
from tests.e2e.driving import only_run, records_of, run_command

pytestmark = [
    pytest.mark.measuring,
    pytest.mark.namespaces,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with one run of the quickstart, and what the command printed last."""
    folder = tmp_path_factory.mktemp("quickstart")
    ran = run_command("run", "quickstart", "--set", "launches=3", folder=folder, timeout_s=550)
    assert ran.returncode == 0, ran.stderr
    return folder, ran.stdout


def of(records: list[dict[str, Any]], workload: str, network: str) -> list[dict[str, Any]]:
    return [r for r in records if (r["workload"], r["network"]) == (workload, network)]


def median_of(records: list[dict[str, Any]], metric: str) -> float:
    return statistics.median(record["metrics"][metric] for record in records)


@pytest.mark.measured
def test_the_slow_step_is_longer_by_what_the_bytes_take(quickstart: tuple[Path, str]) -> None:
    records = records_of(only_run(quickstart[0]))
    slow, reference = of(records, "train", "pod-like"), of(records, "train", "reference")
    rates = {
        name: median_of(of(records, "collectives", name), "link_rate_gbps")
        for name in ("pod-like", "reference")
    }
    wire_gbit = 8e-9 * median_of(slow, "wire_bytes")
    expected_s = wire_gbit * (1 / rates["pod-like"] - 1 / rates["reference"])
    difference_s = median_of(slow, "step_time_s") - median_of(reference, "step_time_s")
    assert difference_s == pytest.approx(expected_s, rel=0.25)


@pytest.mark.measured
def test_the_network_cost_is_that_difference_too(quickstart: tuple[Path, str]) -> None:
    records = records_of(only_run(quickstart[0]))
    slow, reference = of(records, "train", "pod-like"), of(records, "train", "reference")
    difference_s = median_of(slow, "step_time_s") - median_of(reference, "step_time_s")
    cost_s = median_of(slow, "network_cost_s") - median_of(reference, "network_cost_s")
    assert cost_s == pytest.approx(difference_s, rel=0.25)


@pytest.mark.measured
def test_the_slow_network_is_the_limit_and_the_reference_is_not(
    quickstart: tuple[Path, str],
) -> None:
    shown = quickstart[1].split("one node 1x1\n")[1]
    sentences = {
        name: shown.split(f"{name} 2x1\n")[1].split(":")[0].strip()
        for name in ("pod-like", "vnic-like", "reference")
    }
    assert sentences["pod-like"] == "network-bound"
    assert sentences["reference"] != "network-bound"


@pytest.mark.measured
def test_every_trial_is_measured_and_correct(quickstart: tuple[Path, str]) -> None:
    records = records_of(only_run(quickstart[0]))
    assert len(records) == 3 * 7
    for record in records:
        assert record["status"] == "ok"
        assert all(row["is_correct"] for row in record["collectives"])
        assert all(value is not None or name in record["missing"]
                   for name, value in record["metrics"].items())  # fmt: skip
    for network in ("pod-like", "vnic-like"):
        trials = of(records, "collectives", network)
        assert max(trial["metrics"]["line_share_ratio"] for trial in trials) <= 1.02


@pytest.mark.measured
@pytest.mark.parametrize("network", ["pod-like", "vnic-like"])
def test_a_shaped_trial_fills_its_line_or_says_why_not(
    quickstart: tuple[Path, str], network: str
) -> None:
    """Stolen cores take from a line and never give, so a trial that had none of its own says
    something by filling it alone. One trial may share its cores with another program for a moment.
    """
    trials = of(records_of(only_run(quickstart[0])), "collectives", network)
    shares = [trial["metrics"]["line_share_ratio"] for trial in trials]
    judged = [
        share
        for share, trial in zip(shares, trials, strict=True)
        if share >= 0.85 or not says_that_cores_were_stolen(trial)
    ]
    if not judged:
        pytest.skip(f"not judged: cores were stolen in every trial, which filled {shares}")
    assert statistics.median(judged) >= 0.85, shares


def test_losses_do_not_depend_on_the_network(quickstart: tuple[Path, str]) -> None:
    records = records_of(only_run(quickstart[0]))
    losses = [
        median_of(of(records, "train", name), "loss")
        for name in ("pod-like", "vnic-like", "reference")
    ]
    assert max(losses) - min(losses) < 1e-4


def test_the_report_is_one_file_that_loads_nothing(quickstart: tuple[Path, str]) -> None:
    page = (only_run(quickstart[0]) / "report.html").read_text()
    assert len(page.encode()) < 2_000_000
    loads = re.findall(r"""(?:src|href)=["']?(?!#|data:)([^"'\s>]+)""", page.split("<script")[0])
    assert loads == []


@pytest.mark.measured
def test_show_compare_and_export_read_the_run(quickstart: tuple[Path, str]) -> None:
    folder = quickstart[0]
    shown = run_command("show", "last", folder=folder)
    assert shown.returncode == 0
    assert "network-bound" in shown.stdout
    judged = run_command("show", "last", "--json", folder=folder)
    assert judged.stdout == (only_run(folder) / "analysis.json").read_text()
    bounds = {case["verdict"]["bound"] for case in json.loads(judged.stdout)["cases"]}
    assert "network-bound" in bounds
    compared = run_command("compare", "last", folder=folder)
    assert compared.returncode == 0
    assert "times as high in B, worse" in compared.stdout
    itself = run_command("compare", "last", "last", folder=folder)
    assert itself.returncode == 0
    assert "not interleaved" in itself.stdout
    rows = run_command("export", "last", "--format", "csv", folder=folder)
    assert len(list(csv.DictReader(io.StringIO(rows.stdout)))) == 3 * 7
    everything = run_command("export", "last", "--format", "json", folder=folder)
    assert len(json.loads(everything.stdout)["records"]) == 3 * 7
