"""Holds the main job: the quickstart runs for real, agrees with physics, and ends in a report.

Facts are of one launch with two sizes of message, judgements of three whole ones.
"""

import csv
import io
import json
import re
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.bytes_on_wire import assert_explained
from tests.disturbance import says_that_cores_were_stolen
from tests.e2e.driving import only_run, records_of, run_command
from tests.predict.making_systems import system

from broadgauge.advise.limits import NETWORK_SHARE
from broadgauge.catalog.traffic import gloo_node_bytes
from broadgauge.merging.definitions import busbw_gbyte_per_s
from broadgauge.messages.payload import payload_rate_gbps
from broadgauge.predict.runs.cases import train_cases
from broadgauge.predict.runs.check import check_run
from broadgauge.results.network_share import AGREEING_RATIO
from broadgauge.results.run_path import read_summary
from broadgauge.specs.units import show_time
from broadgauge.specs.workloads.workload import GptModel

pytestmark = [
    pytest.mark.measuring,
    pytest.mark.namespaces,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
NETWORKS = ("pod-like", "vnic-like", "reference")
SIZES = (64 * 1024, 1024 * 1024)
ONE_LAUNCH = ("launches=1", "workloads.collectives.sizes=[64 KiB, 1 MiB]")
MODEL = GptModel(layers=4, hidden=256, heads=4, seq_len=64)
"""The quickstart's; its gradients are float32."""
HEADERS_RATIO = 1 / payload_rate_gbps(1.0, 1500)


@dataclass(frozen=True)
class Quickstart:
    """A folder with one run of the quickstart, and what the command printed last."""

    folder: Path
    printed: str

    @property
    def run(self) -> Path:
        return only_run(self.folder)

    @property
    def records(self) -> list[dict[str, Any]]:
        return records_of(self.run)


def quickstart_in(folder: Path, *settings: str) -> Quickstart:
    changes = [word for setting in settings for word in ("--set", setting)]
    ran = run_command("run", "quickstart", *changes, folder=folder, timeout_s=550)
    assert ran.returncode == 0, ran.stderr
    return Quickstart(folder, ran.stdout)


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Quickstart:
    return quickstart_in(tmp_path_factory.mktemp("quickstart"), *ONE_LAUNCH)


@pytest.fixture(scope="module")
def three_launches(tmp_path_factory: pytest.TempPathFactory) -> Quickstart:
    return quickstart_in(tmp_path_factory.mktemp("three-launches"), "launches=3")


def of(records: list[dict[str, Any]], workload: str, network: str) -> list[dict[str, Any]]:
    return [r for r in records if (r["workload"], r["network"]) == (workload, network)]


def median_of(records: list[dict[str, Any]], metric: str) -> float:
    return statistics.median(record["metrics"][metric] for record in records)


def test_every_trial_is_there_and_correct(quickstart: Quickstart) -> None:
    records = quickstart.records
    assert len(records) == 7
    for record in records:
        assert record["status"] == "ok"
        assert all(row["is_correct"] for row in record["collectives"])
        assert all(value is not None or name in record["missing"]
                   for name, value in record["metrics"].items())  # fmt: skip
        assert [node["node"] for node in record["nodes"]] == list(range(int(record["shape"][0])))
    for network in NETWORKS:
        (record,) = of(records, "collectives", network)
        said = [(row["op"], row["size_bytes"]) for row in record["collectives"]]
        ops = ("all_reduce", "all_gather", "reduce_scatter")
        assert said == [(op, size) for op in ops for size in SIZES]


def test_no_byte_is_unexplained(quickstart: Quickstart) -> None:
    """Of collectives, and of the gradients of a step, with the headers of full frames."""
    for network in NETWORKS:
        (record,) = of(quickstart.records, "collectives", network)
        again = record["metrics"]["retransmits_count"]
        for row in record["collectives"]:
            if row["size_bytes"] == SIZES[-1]:
                assert_explained(
                    row["wire_bytes"],
                    gloo_node_bytes(row["op"], 2, row["size_bytes"]) * HEADERS_RATIO,
                    num_retransmits=again / row["iterations"],
                    where=(network, row["op"]),
                )
        (record,) = of(quickstart.records, "train", network)
        assert_explained(
            record["metrics"]["wire_bytes"],
            4 * MODEL.parameters * HEADERS_RATIO,
            num_retransmits=record["metrics"]["retransmits_count"],
            where=network,
        )


def test_figures_of_a_row_are_those_of_its_bytes_and_time(quickstart: Quickstart) -> None:
    for network in NETWORKS:
        (record,) = of(quickstart.records, "collectives", network)
        for row in record["collectives"]:
            assert 0 < row["time_min_s"] <= row["time_median_s"] <= row["time_max_s"]
            known = busbw_gbyte_per_s(row["op"], 2, row["size_bytes"], row["time_s"])
            assert row["busbw_gbyte_per_s"] == pytest.approx(known)
            rate_gbps = 8e-9 * row["wire_bytes"] / row["time_s"]
            assert row["link_rate_gbps"] == pytest.approx(rate_gbps)


def test_a_verdict_is_that_of_its_evidence(quickstart: Quickstart) -> None:
    """Of one launch: its share of the step decides, and what is printed says the same."""
    cases = json.loads((quickstart.run / "analysis.json").read_text())["cases"]
    verdicts = {case["label"]: case["verdict"] for case in cases}
    printed = " ".join(quickstart.printed.split())
    for network in NETWORKS:
        (record,) = of(quickstart.records, "train", network)
        metrics, verdict = record["metrics"], verdicts[f"train 2x1 {network}"]
        step_s, off_s = metrics["step_time_s"], metrics["step_without_communication_s"]
        assert metrics["network_cost_s"] == pytest.approx(step_s - off_s)
        share = metrics["network_cost_s"] / step_s
        is_small = -AGREEING_RATIO <= share < NETWORK_SHARE
        assert (verdict["bound"] == "compute-bound") == is_small
        if share < -AGREEING_RATIO:  # of a busy machine: no network saves time
            assert verdict["bound"] == "unknown"
        assert verdict["evidence"][0] == (
            f"a step takes {show_time(step_s)}, without communication {show_time(off_s)}"
        )
        assert verdict["sentence"].startswith(f"{verdict['bound']}: ")
        assert f"{network} 2x1 {verdict['sentence']}" in printed


@pytest.mark.measured
def test_the_slow_step_is_longer_by_what_the_bytes_take(three_launches: Quickstart) -> None:
    records = three_launches.records
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
def test_the_network_cost_is_that_difference_too(three_launches: Quickstart) -> None:
    records = three_launches.records
    slow, reference = of(records, "train", "pod-like"), of(records, "train", "reference")
    difference_s = median_of(slow, "step_time_s") - median_of(reference, "step_time_s")
    cost_s = median_of(slow, "network_cost_s") - median_of(reference, "network_cost_s")
    assert cost_s == pytest.approx(difference_s, rel=0.25)


@pytest.mark.measured
def test_the_slow_network_is_the_limit_and_the_reference_is_not(
    three_launches: Quickstart,
) -> None:
    shown = three_launches.printed.split("one node 1x1\n")[1]
    sentences = {
        name: shown.split(f"{name} 2x1\n")[1].split(":")[0].strip()
        for name in ("pod-like", "vnic-like", "reference")
    }
    assert sentences["pod-like"] == "network-bound"
    assert sentences["reference"] != "network-bound"


@pytest.mark.measured
def test_no_line_carries_more_than_it_has(three_launches: Quickstart) -> None:
    for network in ("pod-like", "vnic-like"):
        trials = of(three_launches.records, "collectives", network)
        assert max(trial["metrics"]["line_share_ratio"] for trial in trials) <= 1.02


@pytest.mark.measured
@pytest.mark.parametrize("network", ["pod-like", "vnic-like"])
def test_a_shaped_trial_fills_its_line_or_says_why_not(
    three_launches: Quickstart, network: str
) -> None:
    """Stolen cores take from a line and never give, so a trial that had none of its own says
    something by filling it alone. One trial may share its cores with another program for a moment.
    """
    trials = of(three_launches.records, "collectives", network)
    shares = [trial["metrics"]["line_share_ratio"] for trial in trials]
    judged = [
        share
        for share, trial in zip(shares, trials, strict=True)
        if share >= 0.85 or not says_that_cores_were_stolen(trial)
    ]
    if not judged:
        pytest.skip(f"not judged: cores were stolen in every trial, which filled {shares}")
    assert statistics.median(judged) >= 0.85, shares


def test_the_bytes_predicted_are_those_that_were_counted(quickstart: Quickstart) -> None:
    """By a calibration that is made up: bytes don't hang on it."""
    stored = read_summary(quickstart.run)
    names = {each.device_name for each in train_cases(stored)}
    made_up = system(has_steps=True)
    device = made_up.device.model_copy(update={"name": names.pop() or made_up.device.name})
    steps = check_run(made_up.model_copy(update={"device": device}), stored)
    assert sorted(step.network for step in steps if step.wire_bytes) == sorted(NETWORKS)
    for step in steps:
        if step.wire_bytes:
            (record,) = of(quickstart.records, "train", step.network)
            assert step.wire_bytes == record["metrics"]["wire_bytes"]
            assert_explained(
                step.wire_bytes,
                step.network_bytes * HEADERS_RATIO,
                num_retransmits=record["metrics"]["retransmits_count"],
                where=step.label,
            )


def test_losses_do_not_depend_on_the_network(quickstart: Quickstart) -> None:
    records = quickstart.records
    losses = [median_of(of(records, "train", name), "loss") for name in NETWORKS]
    assert max(losses) - min(losses) < 1e-4


def test_the_report_is_one_file_that_loads_nothing(quickstart: Quickstart) -> None:
    page = (quickstart.run / "report.html").read_text()
    assert len(page.encode()) < 2_000_000
    loads = re.findall(r"""(?:src|href)=["']?(?!#|data:)([^"'\s>]+)""", page.split("<script")[0])
    assert loads == []


def test_show_and_export_read_the_run(quickstart: Quickstart) -> None:
    folder = quickstart.folder
    shown = run_command("show", "last", folder=folder)
    assert shown.returncode == 0
    judged = run_command("show", "last", "--json", folder=folder)
    assert judged.stdout == (quickstart.run / "analysis.json").read_text()
    for case in json.loads(judged.stdout)["cases"]:
        if case["label"].startswith("train"):
            assert case["verdict"]["bound"] in shown.stdout
    itself = run_command("compare", "last", "last", folder=folder)
    assert itself.returncode == 0
    assert "not interleaved" in itself.stdout
    rows = run_command("export", "last", "--format", "csv", folder=folder)
    assert len(list(csv.DictReader(io.StringIO(rows.stdout)))) == 7
    everything = run_command("export", "last", "--format", "json", folder=folder)
    assert len(json.loads(everything.stdout)["records"]) == 7


@pytest.mark.measured
def test_the_slow_network_is_told_by_all_views(three_launches: Quickstart) -> None:
    folder = three_launches.folder
    assert "network-bound" in run_command("show", "last", folder=folder).stdout
    compared = run_command("compare", "last", folder=folder)
    assert compared.returncode == 0
    assert "times as high in B, worse" in compared.stdout
