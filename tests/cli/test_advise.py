"""`broadgauge advise`: what is printed, and what is refused?"""

import json
from pathlib import Path

import pytest

from broadgauge.cli.main import main

FILE = """\
storages:
  - {name: disk, is_durable: false, batch_loading_s: 1, model_loading_s: 2, checkpoint_stall_s: 3}
  - {name: net, is_durable: true, batch_loading_s: 2, model_loading_s: 4, checkpoint_stall_s: 60, time_to_durable_s: 90}
job: {samples: 1000, saves: 10, length_s: 10 h, gpus: 8, usd_per_gpu_hour: 2, mean_time_between_failures_s: 30 h}
now: {batch_loading: net, model_loading: net, checkpoint_saving: net}
"""  # noqa: E501


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["advise", *words]) == 0
    return capsys.readouterr().out


def test_the_articles_figures(capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, "skypilot-2025")
    rows = {line[:17].strip(): line[17:].split() for line in said.splitlines()}
    assert rows["batch loading"][0] in ("s3-mount", "shared-fs")
    assert "Training waits 267 s." in said
    assert "the data set outlives the node: it costs 820 ms; without it local-nvme" in said
    assert "(`resume_from: same_mount`): shared-fs / s3-cached / s3-cached, +53.4 s" in (
        " ".join(said.split())
    )


def test_a_file_with_a_job(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(FILE)
    said = " ".join(printed(capsys, str(tmp_path / "s.yaml")).split())
    assert "Training waits 10.4 min, 1.73 % of 10 h, 1.39 GPU hours, $2.77." in said
    assert "A node that is lost at the worst moment costs 61.5 min of training." in said
    assert "60 min (least)" in said, "sqrt(2 · 60 s · 30 h) is an hour"


def test_json_says_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(FILE)
    told = json.loads(printed(capsys, str(tmp_path / "s.yaml"), "--json"))
    phases = told["chosen"]["phases"]
    assert {phase: each["storage"] for phase, each in phases.items()} == dict.fromkeys(
        phases, "net"
    )
    assert told["chosen"]["total_s"] == 20 + 4 + 600
    assert told["best_interval_s"] == pytest.approx(3600)
    assert [each["need"] for each in told["deciding"]] == [
        *("durable_checkpoints", "durable_data", "resume_from")
    ]
    assert told["other_reading"]["chosen"] is None


def test_when_no_choice_is_left_the_need_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, "skypilot-2025", "--set", "needs.lose_at_most_s=30 min")
    assert "No choice meets all needs." in said
    assert "a lost node costs 30 min of training at most" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.yaml"], "nowhere.yaml: no such file\n  hint: `broadgauge advise skypilot-2025`"),
        (["skypilot-2025", "--set", "needs.lose=1"], "unknown key `lose`"),
        (["skypilot-2025", "--set", "storages.²=1"], "`storages` has no part `²`"),
        (["skypilot-2025", "--set", f"storages.{'9' * 5000}=1"], "`storages` has no part `9"),
        (["skypilot-2025", "--set", "job.data_bytes=1e400 B"], "a size is a finite number"),
    ],
)
def test_bad_input(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_is_read_as_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", str(tmp_path)]) == 5
    assert "is no run folder" in capsys.readouterr().err


def test_on_a_narrow_terminal_no_line_is_longer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    lines = printed(capsys, "skypilot-2025").splitlines()
    assert max(map(len, lines)) <= 50


def test_a_limit_that_nothing_can_show_to_hold_says_what_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = " ".join(printed(capsys, "skypilot-2025", "--set", "needs.lose_at_most_s=1 h").split())
    assert "of training at most, which is not known without `job.length_s` and `job.saves`" in said


def test_needs_that_only_together_leave_no_choice_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text(FILE.splitlines(keepends=True)[0] + FILE.splitlines()[1])
    said = " ".join(printed(capsys, str(tmp_path / "s.yaml")).split())
    assert "Only without all of these there would be one" in said
    assert "- checkpoints outlive the node - the data set outlives the node" in said
    told = json.loads(printed(capsys, str(tmp_path / "s.yaml"), "--json"))
    assert told["excluding_together"] == ["durable_checkpoints", "durable_data"]


def test_what_is_used_now_and_not_known_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text(FILE.replace("model_loading: net, ", ""))
    said = " ".join(printed(capsys, str(tmp_path / "s.yaml")).split())
    assert "What is used now is not compared: model loading is not known of it." in said


def test_a_storage_may_be_larger_than_a_tebibyte(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = FILE.replace("{name: net,", "{name: net, room_bytes: 2000 TB,")
    (tmp_path / "s.yaml").write_text(text)
    words = [str(tmp_path / "s.yaml"), "--json", "--set"]
    assert json.loads(printed(capsys, *words, "job.data_bytes=1000 TB"))["chosen"]
    assert json.loads(printed(capsys, *words, "job.data_bytes=3000 TB"))["excluding"] == [
        *("durable_data", "room_bytes")
    ]
