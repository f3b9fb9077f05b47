"""`broadgauge article`: four columns, at any width, with figures of a run of yours."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.predict.making_articles import articles_found

from broadgauge.cli.main import main
from broadgauge.predict.articles import scores as scores_module

GOLDEN = Path(__file__).parents[1] / "results/golden/schema-1"


@pytest.fixture(autouse=True)
def _scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores_module, "article_scores", articles_found)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A run with two figures that an article has, and one that it can't have."""
    folder = tmp_path / "runs"
    run = Path(shutil.copytree(GOLDEN, folder / "mine-1"))
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    cases = ({"workload": "train", "network": name} for name in ("reference", "slow", "absent"))
    labels = ("H100, 1 node", "H100, 2 nodes, pod network", "H100, 2 nodes, vNIC")
    plan["published"] = [
        {"label": label, "metric": "step_time_s", "value": 1.0, "cases": case, "source": "x"}
        for label, case in zip(labels, cases, strict=True)
    ]
    (run / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    return folder


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["article", *words]) == 0
    return capsys.readouterr().out


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed(capsys, *words, "--json"))
    assert found["format"] == "broadgauge article"
    return found


def table_rows(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for table in found["tables"] for row in table["rows"]}


def test_without_a_name_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys)
    assert [name for name in ("000", "001", "003", "004") if name not in text] == []
    assert "002 is a Korean copy of 000" in text
    names = [each["name"] for each in document(capsys)["articles"]]
    assert names[0] == "openshift-network"


@pytest.mark.parametrize("width", [30, 60, 80, 200])
@pytest.mark.parametrize("article", ["000", "001", "003", "004"])
def test_it_fits_any_terminal(
    article: str,
    width: int,
    runs: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = printed(capsys, article, "--runs-folder", str(runs))
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    assert [each for each in ("published", "predicted", "Claims") if each not in words] == []


def test_a_name_and_a_copy_are_the_same_article(capsys: pytest.CaptureFixture[str]) -> None:
    first = printed(capsys, "000")
    assert printed(capsys, "openshift-network") == first
    assert printed(capsys, "002") == first


def test_a_name_that_is_none_is_refused_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["article", "openshift-netwrk"]) == 2
    assert "did you mean `openshift-network`?" in capsys.readouterr().err
    assert main(["article", "nothing"]) == 2
    assert "hint: " in capsys.readouterr().err


def test_published_and_predicted_are_those_of_validate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = table_rows(document(capsys, "004"))
    step = rows["nebius-h100-eth10"]
    assert (step["published"], step["value"]) == ("39.8 s", 39.8)
    assert step["predicted"]["value"] == articles_found().step_s("nebius-h100-eth10")
    assert step["predicted"]["low"] < step["predicted"]["value"] < step["predicted"]["high"]
    storage = rows["save-s3-mount"]
    assert (storage["predicted"], storage["reason"]) == (None, "storage is measured, not predicted")
    assert storage["over_first_ratio"] == pytest.approx(436 / 178)


def test_what_was_measured_is_shown_with_its_scale(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "003")
    (run,) = found["emulated"]
    assert (run["date"], run["launches"]) == ("2026-11-21", 1)
    row = table_rows(found)["e-15-5-3"]
    assert row["emulated"]["shown"] == "113 ms"
    assert row["emulated_over_first_ratio"] == pytest.approx(113 / 59.2)


def test_yours_come_from_your_runs(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "000", "--runs-folder", str(runs))
    assert [each["run"] for each in found["yours"]] == ["mine-1"]
    rows = table_rows(found)
    one, pod = rows["h100-cluster-none-1"]["yours"], rows["h100-cluster-pod-2"]["yours"]
    assert one["estimate"]["value"] > 0
    assert pod["over_first"]["value"] > 1
    missing = rows["h100-cluster-vnic-2"]["yours"]
    assert missing["estimate"] is None
    assert missing["reason"]
    assert rows["h100-cluster-sriov-2"]["yours"] is None
    named = document(capsys, "000", "--runs-folder", str(runs), "--run", "last")
    assert named["yours"] == found["yours"]


def test_runs_of_other_things_and_none_are_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(GOLDEN, tmp_path / "other")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/plan.json").write_text("{", encoding="utf-8")
    assert main(["article", "000", "--run", "other", "--runs-folder", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "which names no figure of this article by its label" in told
    for folder in (tmp_path, tmp_path / "absent"):
        assert document(capsys, "000", "--runs-folder", str(folder))["yours"] == []
    assert main(["article", "000", "--run", "nowhere"]) == 5
