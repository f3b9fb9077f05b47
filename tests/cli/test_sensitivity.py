"""Proves `broadgauge sensitivity`: the ladder made of an experiment, and what is said of a run."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.advise.ladders.ladder_runs import COMPUTE_S, STEP_BYTES, Planted, ladder_run
from tests.engine.making import COLLECTIVES, TRAIN, a_machine, an_experiment, devices_of

from broadgauge.cli.main import main
from broadgauge.cli.start_and_show import RunRequest
from broadgauge.engine.plan import make_plan
from broadgauge.engine.run_result import RunResult
from broadgauge.running.ladder import as_ladder, default_rates_gbps, parse_rates_gbps
from broadgauge.running.starting import FinishedRun
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.text.writing import dump_experiment

GOLDEN = Path(__file__).parents[1] / "results/golden/schema-1"


def test_a_ladder_is_the_same_network_at_other_rates() -> None:
    overlay = {"name": "pod", "rate_gbps": 0.4, "receive_rate_gbps": 0.1, "overlay": "vxlan"}
    experiment = an_experiment(
        networks=[{"name": "reference"}, overlay],
        workloads=[TRAIN | {"networks": ["pod"]}, COLLECTIVES],
        cluster={"shapes": ["1x1", "2x1"]},
        skip_if=[{"network": "pod"}, {"shape": "4x1"}],
        hypotheses=[
            {
                "name": "h",
                "statement": "s",
                "cases": {"network": "pod"},
                "over": {"network": "reference"},
                "at_most": 2,
            }
        ],
    )
    ladder = as_ladder(experiment, (0.4, 1.6))
    assert ladder.name == "tiny-ladder"
    rungs = [each for each in ladder.networks if isinstance(each, Network)]
    assert [(rung.name, rung.rate_gbps, rung.receive_rate_gbps) for rung in rungs] == [
        ("400-mbit", 0.4, 0.1),
        ("1.6-gbit", 1.6, 0.4),
        ("unshaped", None, None),
    ]
    assert {rung.overlay for rung in rungs} == {"vxlan"}
    assert [each.kind for each in ladder.workloads] == ["train"]
    assert ladder.cluster.shapes == ("2x1",)
    assert [rule.shape for rule in ladder.skip_if] == [("4x1",)]
    # What was made without validation is valid: it reads back as itself, and is planned.
    assert read_experiment(dump_experiment(ladder), "ladder.yaml") == ladder
    assert len(make_plan(ladder, devices_of(a_machine())).cases) == 3


@pytest.mark.parametrize(
    "more",
    [
        {"delay_s": 0.01},
        {"loss_ratio": 0.01},
        {"slow_pairs": [{"nodes": [0, 1], "rate_ratio": 0.5}]},
    ],
)
def test_a_delayed_network_has_no_unshaped_rung(more: dict[str, Any]) -> None:
    """An unshaped link has no delay, and would be another network."""
    experiment = an_experiment(networks=[{"name": "far", "rate_gbps": 0.4} | more])
    rungs = as_ladder(experiment, (0.4, 0.8, 1.6)).networks
    assert [rung.name for rung in rungs] == ["400-mbit", "800-mbit", "1.6-gbit"]


def test_the_default_ladder_holds_the_rates_that_are_named() -> None:
    named = [{"name": "a", "rate_gbps": 0.2}, {"name": "b", "rate_gbps": 1.0}]
    rates = default_rates_gbps(an_experiment(networks=named))
    assert len(rates) == 6
    assert rates[0] == pytest.approx(0.1)
    assert rates[-1] == pytest.approx(1.6)
    factors = [b / a for a, b in pairwise(rates)]
    assert max(factors) == pytest.approx(min(factors), rel=0.02)
    wide = [{"name": "a", "rate_gbps": 0.2}, {"name": "b", "rate_gbps": 25}]
    assert default_rates_gbps(an_experiment(networks=wide))[-1] == pytest.approx(25)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"networks": [{"name": "reference"}]}, "names a rate to begin a ladder at"),
        ({"workloads": [COLLECTIVES]}, "has collectives only"),
        ({"cluster": {"shapes": ["1x1", "1x2"]}}, "has one node only"),
    ],
)
def test_what_can_have_no_ladder_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        as_ladder(an_experiment(**changes))
    assert refused.value.hint


def test_a_network_that_is_not_there() -> None:
    with pytest.raises(InputError, match="--network slwo") as refused:
        as_ladder(an_experiment(), network_name="slwo")
    assert "slow" in str(refused.value.hint)


def test_rates_are_numbers_or_have_units() -> None:
    assert parse_rates_gbps("0.2, 0.5,1") == (0.2, 0.5, 1.0)
    assert parse_rates_gbps("200 Mbit/s,1 Gbit/s,10Gbps") == (0.2, 1.0, 10.0)


@pytest.mark.parametrize("text", ["", "1,2", "1,1,2", "1,fast,2", "0,1,2", "1,2,1e9", "nan,1,2"])
def test_rates_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--rates") as refused:
        parse_rates_gbps(text)
    assert refused.value.hint is not None


def test_a_stored_run_is_told_in_three_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["sensitivity", str(ladder_run(tmp_path))]) == 0
    shown = capsys.readouterr().out
    assert "train 2x1: step time against the link's rate" in shown
    for title in (
        "Bytes on the critical path\n  1.99 MB (",
        "Floor: the time that no network can remove\n  50 ms (",
        "Rate beyond which nothing is gained\n  16.7 Gbit/s (",
    ):
        assert title in shown, shown
    assert "with communication off 50 ms were measured" in " ".join(shown.split())
    assert "unshaped  " in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("columns", ["80", "50", "30"])
def test_no_line_is_wider_than_the_terminal(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: str,
) -> None:
    path = ladder_run(tmp_path, Planted(off_step_s=0.04, counted_bytes=1e6), launches=3)
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["sensitivity", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "disagrees:" in shown
    assert max(map(len, shown.splitlines())) <= int(columns)


def test_json_holds_the_estimates_and_what_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ladder_run(tmp_path, Planted(step_s=lambda _: COMPUTE_S))
    assert main(["sensitivity", str(path), "--json", "--within", "5%"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "broadgauge sensitivity"
    (ladder,) = document["ladders"]
    assert ladder["form"] == "flat"
    assert ladder["gain_ratio"] == 0.05
    assert ladder["critical_bytes"]["estimate"] is None
    assert ladder["critical_bytes"]["why_unknown"]
    assert 0 < ladder["critical_bytes"]["at_most"] < STEP_BYTES
    assert ladder["enough_gbps"]["at_most"] == 0.1
    base = ladder["base_s"]["estimate"]
    assert base["low"] <= base["value"] <= base["high"]
    assert ladder["rates_that_would_show_more_gbps"][0] < 0.1
    assert ladder["not_in_the_curve"] == []
    assert ladder["rungs"][-1]["is_unshaped"]


def test_json_says_what_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line, and no rung without a rate: its floor may lie anywhere below the fastest."""
    path = ladder_run(tmp_path, has_reference=False)
    assert main(["sensitivity", str(path), "--json"]) == 0
    (ladder,) = json.loads(capsys.readouterr().out)["ladders"]
    floor = ladder["base_s"]
    assert floor["estimate"] is None
    assert floor["lack"] == "faster rates"
    assert floor["at_least"] < COMPUTE_S < floor["at_most"]
    assert ladder["curve_base_s"]["value"] == pytest.approx(COMPUTE_S, rel=0.02)
    assert max(ladder["rates_that_would_show_more_gbps"]) > 1.6


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--rates", "1,2,3"], "--rates changes what is run"),
        (["--set", "launches=3"], "--set changes what is run"),
        (["--within", "0"], "--within"),
        (["--metric", "images_per_s"], "no such time or rate"),
    ],
)
def test_flags_that_mean_nothing_for_a_run_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    assert main(["sensitivity", str(ladder_run(tmp_path, launches=1)), *flags]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_without_a_run_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sensitivity", str(tmp_path)]) == 5
    assert main(["sensitivity", "last", "--runs-folder", str(tmp_path)]) == 5
    assert "no run" in capsys.readouterr().err


def test_without_nodes_nothing_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = replace(a_machine(), can_emulate=False, refusal="no namespaces", fix="be root")
    monkeypatch.setattr("broadgauge.platforms.machine.read_machine", lambda: machine)
    flags = ["--runs-folder", str(tmp_path / "runs")]
    assert main(["sensitivity", "known-step", *flags]) == 4
    error = capsys.readouterr().err
    assert "a ladder needs emulated nodes, which are refused here: no namespaces" in error
    assert "hint: be root" in error
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("code", "is_shown"), [(0, True), (3, True), (130, False), (143, False)])
def test_a_run_that_ended_early_says_how_to_go_on_and_failed_trials_hide_no_answer(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    is_shown: bool,
) -> None:
    path = ladder_run(tmp_path, launches=3)

    result = RunResult(
        interrupted_by=None, num_trials=1, num_ok=1, num_failed=0, num_skipped=0, message=""
    )
    run = FinishedRun(folder=path, location=str(path), result=result)

    def run_new(request: RunRequest) -> FinishedRun:
        assert request.change is not None
        assert request.change(an_experiment()).name == "tiny-ladder"
        return run

    def show_finished(finished: FinishedRun) -> int:
        assert finished is run
        print("the run's own table")  # noqa: T201
        return code

    monkeypatch.setattr("broadgauge.platforms.machine.read_machine", a_machine)
    monkeypatch.setattr("broadgauge.cli.start_and_show.run_new", run_new)
    monkeypatch.setattr("broadgauge.cli.start_and_show.show_finished", show_finished)
    assert main(["sensitivity", "known-step", "--json"]) == code
    out, err = capsys.readouterr()
    assert "the run's own table" in err
    if is_shown:
        assert json.loads(out)["ladders"][0]["form"] == "line"
    else:
        assert out == ""
        assert err.rstrip().endswith(f"sensitivity {path}")


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_too_few_rates_are_an_error_with_a_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str]
) -> None:
    path = shutil.copytree(GOLDEN, tmp_path / "run")
    assert main(["sensitivity", str(path), *flags]) == 2
    out, err = capsys.readouterr()
    assert "1 rate can be used" in out, "what there is, is shown"
    assert err.startswith(f"broadgauge: no curve can be drawn of {path}: 1 rate can be used")
    assert "hint: `broadgauge sensitivity EXPERIMENT` measures a job at several rates" in err


def test_the_run_before_the_last_is_a_run_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sensitivity", "last~1"]) == 5
    assert "there is no run under runs/" in capsys.readouterr().err


def test_a_system_file_is_read_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letters").write_text("dear reader")
    assert main(["sensitivity", "quickstart", "--system", str(tmp_path / "letters")]) == 2
    assert "letters" in capsys.readouterr().err
