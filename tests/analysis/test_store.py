"""Is analysis.json a cache: made from records alone, made anew when stale, never in the way?"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broadgauge.analysis import analyse
from broadgauge.analysis.model import AnalysedRun, Analysis
from broadgauge.analysis.store import ANALYSIS_FILE, analysis_json, read_analysed
from broadgauge.results.folder.lock import FolderLock
from broadgauge.specs.base import AS_STORED

GOLDEN = Path(__file__).parents[1] / "results/golden/schema-1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, tmp_path / "run"))


@pytest.fixture
def times_analysed(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows with each analysis."""
    times: list[None] = []
    make = analyse.analyse

    def counting(*arguments: object) -> Analysis:
        times.append(None)
        return make(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(analyse, "analyse", counting)
    return times


def test_deleted_it_comes_back_byte_by_byte(folder: Path) -> None:
    read_analysed(folder)
    first = (folder / ANALYSIS_FILE).read_bytes()
    (folder / ANALYSIS_FILE).unlink()
    read_analysed(folder)
    assert (folder / ANALYSIS_FILE).read_bytes() == first
    assert len(first) > 1000


def test_what_is_stored_is_not_made_again(folder: Path, times_analysed: list[None]) -> None:
    made, kept = read_analysed(folder), read_analysed(folder)
    assert len(times_analysed) == 1
    assert kept.analysis == made.analysis
    assert analysis_json(kept.analysis) == analysis_json(made.analysis)


def remove_a_record(folder: Path) -> None:
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "records.jsonl").write_bytes(b"".join(lines[:-1]))


def describe_the_plan(folder: Path) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps({**plan, "description": "another"}))


def raise_the_version(folder: Path) -> None:
    stored = json.loads((folder / ANALYSIS_FILE).read_text())
    stored["made_from"]["analysis_version"] += 1
    (folder / ANALYSIS_FILE).write_text(json.dumps(stored))


def tear(folder: Path) -> None:
    whole = (folder / ANALYSIS_FILE).read_bytes()
    (folder / ANALYSIS_FILE).write_bytes(whole[: len(whole) // 2])


def forget_the_cases(folder: Path) -> None:
    stored = json.loads((folder / ANALYSIS_FILE).read_text())
    del stored["cases"]
    (folder / ANALYSIS_FILE).write_text(json.dumps(stored))


def empty_the_cases(folder: Path) -> None:
    stored = json.loads((folder / ANALYSIS_FILE).read_text())
    (folder / ANALYSIS_FILE).write_text(json.dumps({**stored, "cases": []}))


@pytest.mark.parametrize(
    "change",
    [
        *(remove_a_record, describe_the_plan, raise_the_version),
        *(tear, forget_the_cases, empty_the_cases),
    ],
)
def test_a_stale_one_is_made_anew(
    folder: Path, times_analysed: list[None], change: Callable[[Path], None]
) -> None:
    read_analysed(folder)
    change(folder)
    anew = read_analysed(folder)
    assert len(times_analysed) == 2
    (folder / ANALYSIS_FILE).unlink()
    assert anew.analysis == read_analysed(folder).analysis
    assert len(times_analysed) == 3


def test_a_torn_last_line_is_not_judged(folder: Path, times_analysed: list[None]) -> None:
    read_analysed(folder)
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b'{"record_id": "b9')
    read_analysed(folder)
    assert len(times_analysed) == 1, "the whole lines are the same"


def test_unknown_keys_of_a_later_version_are_ignored(
    folder: Path, times_analysed: list[None]
) -> None:
    read_analysed(folder)
    stored = json.loads((folder / ANALYSIS_FILE).read_text())
    stored["insights"] = {"a": 1}
    stored["cases"][0]["verdict"]["certainty"] = "high"
    (folder / ANALYSIS_FILE).write_text(json.dumps(stored))
    read_analysed(folder)
    assert len(times_analysed) == 1


def test_where_it_cannot_be_stored_it_is_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, data: bytes) -> None:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr("broadgauge.results.folder.disk.write_whole", refuse)
    assert read_analysed(folder).analysis.cases
    assert not (folder / ANALYSIS_FILE).exists()


def test_while_a_run_writes_nothing_is_stored(folder: Path) -> None:
    lock = FolderLock(folder)
    try:
        assert read_analysed(folder).analysis.cases
        assert not (folder / ANALYSIS_FILE).exists()
    finally:
        lock.release()


def test_it_is_made_from_plan_and_records_alone(folder: Path) -> None:
    whole = read_analysed(folder).analysis
    (folder / ANALYSIS_FILE).unlink()
    for name in ("series", "environments"):
        shutil.rmtree(folder / name)
    (folder / "experiment.yaml").write_text("name: other\n")
    moved = folder.rename(folder.with_name("elsewhere"))
    assert read_analysed(moved).analysis == whole


def read_back(analysed: AnalysedRun) -> Analysis:
    text = analysis_json(analysed.analysis)
    return Analysis.model_validate_json(text, context=AS_STORED)


def test_what_is_written_is_what_is_read(folder: Path) -> None:
    analysed = read_analysed(folder)
    assert read_back(analysed) == analysed.analysis
