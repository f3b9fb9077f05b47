"""Is a new kind of workload its own modules and a line in each registry, and nothing else?

The package is copied, the lines are added to the copy, and a run of the new kind goes through it.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.new_kind.registries import REGISTRIES, add_lines
from tests.test_kinds import REGISTRIES as KNOWS_ALL_KINDS

HERE = Path(__file__).parent / "new_kind"
PACKAGE = Path(__file__).parents[1] / "src" / "broadgauge"
NAPS_S = {"2-naps": 0.03, "4-naps": 0.05}
"""The longest of two ranks: tests/new_kind/rank.py."""


class Toy:
    """The run of the toy kind, and the command line of the package that knows it."""

    def __init__(self, package: Path, runs: Path) -> None:
        self.environment = {**os.environ, "PYTHONPATH": str(package.parent), "NO_COLOR": "1"}
        self.folder = Path(self._python(str(HERE / "drive.py"), str(runs)).strip())

    def says(self, *words: str) -> str:
        """What a command writes."""
        return self._python("-m", "broadgauge", *words)

    def _python(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            env=self.environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def copied(folder: Path) -> Path:
    """The package, with the toy's modules and none of its lines."""
    package = folder / "src" / "broadgauge"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, package, ignore=ignored)
    shutil.copytree(HERE / "modules", package, dirs_exist_ok=True, ignore=ignored)
    return package


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    folder = tmp_path_factory.mktemp("new-kind")
    package = copied(folder)
    add_lines(package)
    return Toy(package, folder / "runs")


def type_errors(package: Path, repository: Path) -> str:
    """What mypy says of the registries, as `make lint` asks it."""
    words = (sys.executable, "-m", "mypy", "--config-file", repository / "pyproject.toml")
    cache = ("--cache-dir", package.parent / "cache")
    files = (package / name for name in sorted(KNOWS_ALL_KINDS))
    folder = package.parents[1]
    done = subprocess.run(
        [*words, *cache, *files], capture_output=True, text=True, cwd=folder, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout if done.returncode else ""


@pytest.mark.thorough
def test_the_type_checker_names_the_rooms_that_forgot_a_kind(
    tmp_path: Path, repository: Path
) -> None:
    package = copied(tmp_path)
    add_lines(package, ["specs/workloads/workload.py"])
    said = type_errors(package, repository)
    for name in KNOWS_ALL_KINDS:
        assert f"{name}:" in said, f"{name} may forget a kind:\n{said}"
    add_lines(package, REGISTRIES.keys() - {"specs/workloads/workload.py"})
    assert type_errors(package, repository) == ""


@pytest.mark.slow
def test_a_new_kind_runs_and_leaves_records(toy: Toy) -> None:
    lines = (toy.folder / "records.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["status"] for record in records] == ["ok"] * 6
    for record in records:
        assert record["metrics"]["nap_time_s"] == pytest.approx(NAPS_S[record["workload"]])
        assert record["series"].keys() == {"nap_time_s"}
        assert [finding["rule"] for finding in record["findings"]][:1] == ["nap"]
    plan = json.loads((toy.folder / "plan.json").read_text())
    assert [case["workload"]["kind"] for case in plan["cases"]] == ["toy", "toy"]


@pytest.mark.slow
def test_a_new_kind_is_in_the_table(toy: Toy) -> None:
    text = " ".join(toy.says("show", str(toy.folder), "--details").split())
    assert "clock-bound: naps wait for the clock" in text
    assert "longest nap" in text
    assert "the ranks napped" in text
    assert "supported Four naps take longer than two" in text


@pytest.mark.slow
def test_a_new_kind_is_in_the_report(toy: Toy) -> None:
    toy.says("report", str(toy.folder))
    page = (toy.folder / "report.html").read_text()
    for words in ("Naps of all ranks", "clock-bound on one node", "all of 3 trials napped"):
        assert words in page


@pytest.mark.slow
def test_a_new_kind_is_exported(toy: Toy) -> None:
    text = toy.says("export", str(toy.folder), "--format", "csv")
    rows = list(csv.DictReader(text.splitlines()))
    assert {(row["workload"], float(row["nap_time_s"])) for row in rows} == set(NAPS_S.items())
    document = json.loads(toy.says("export", str(toy.folder), "--format", "json"))
    assert [case["estimates"]["nap_time_s"]["launches"] for case in document["cases"]] == [3, 3]


def test_a_new_kind_is_a_few_lines_elsewhere(tmp_path: Path) -> None:
    """In files that list what there is, whose lines are still where they are expected."""
    for name, lines in REGISTRIES.items():
        copied = tmp_path / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / name, copied)
        added = sum(new.count("\n") - old.count("\n") for old, new in lines.items())
        assert added <= 4, name
    add_lines(tmp_path)
    for copied in tmp_path.rglob("*.py"):
        compile(copied.read_text(), str(copied), "exec")


def test_the_docs_list_those_files(repository: Path) -> None:
    text = (repository / "docs" / "architecture.md").read_text()
    listed = text.split("## A new kind of workload")[1].split("\n## ")[0]
    for name in REGISTRIES:
        path = Path(name)
        rows = [row for row in listed.splitlines() if f"`{path.parts[0]}/" in row]
        assert any(path.name in row for row in rows), name
