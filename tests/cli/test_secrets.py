"""Holds that a planted secret reaches the ranks, and rests in no file of a run or an export."""

import io
import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broadgauge.cli.main import main
from broadgauge.platforms.launch_plan import Programs
from broadgauge.results.folder.reading import read_run

WORKER = Path(__file__).with_name("secret_worker.py")
PLANTED = {
    "HF_TOKEN": "hf_Planted0literal0value",
    "MINE": "Planted0declared0value",
    "HTTPS_PROXY": "http://me:Planted0password@proxy:3128",
    "WANDB_API_KEY": "Planted0inherited0value",
}
"""A literal, one that is declared, one in a URL, and one that the file says nothing of."""
NEEDLES = [value.encode() for value in PLANTED.values()] + [b"Planted0", b"me:Planted0password"]
EXPERIMENT = """\
name: secrets
platform: local
cluster: {shapes: [1x1], device: cpu}
networks:
  - {name: loop, path: sockets}
workloads:
  - kind: command
    command: [script.py]
    metrics: [{name: step_time_s, json_key: a}]
    environment: {HF_TOKEN: hf_Planted0literal0value, OPEN: not-secret}
launches: 2
environment:
  MINE: {from_environment: true}
  HTTPS_PROXY: http://me:Planted0password@proxy:3128
"""


class Bench:
    """A folder with the experiment, and workers that note what they are given."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self._monkeypatch = monkeypatch
        (folder / "script.py").touch()
        (folder / "e.yaml").write_text(EXPERIMENT)
        for name in ("HF_TOKEN", "HTTPS_PROXY"):
            monkeypatch.delenv(name, raising=False)
        for name in ("MINE", "WANDB_API_KEY"):
            monkeypatch.setenv(name, PLANTED[name])

    def work(self, scenario: str) -> None:
        """What the ranks do from now on."""
        argv = (sys.executable, str(WORKER), str(self.seen), scenario)
        programs = Programs(command=argv)
        self._monkeypatch.setattr("broadgauge.platforms.local.Programs", lambda: programs)

    @property
    def seen(self) -> Path:
        return self.folder / "seen.json"

    def given(self) -> dict[str, Any]:
        """What the last rank was given."""
        return json.loads(self.seen.read_text())

    def run(self, *words: str) -> int:
        return main(["run", *words, "--runs-folder", str(self.runs)])

    def run_folder(self) -> Path:
        (path,) = self.runs.iterdir()
        return path

    def without_last_record(self) -> Path:
        """As if the run had been ended before its last trial."""
        path = self.run_folder() / "records.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:-1]))
        return self.run_folder()


@pytest.fixture
def bench(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(empty_folder, monkeypatch)
    made.work("well")
    return made


def places_with_a_secret(folder: Path) -> Iterator[str]:
    """Every file with a needle in it, and with which."""
    for path in folder.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        for needle in NEEDLES:
            if needle in data or needle in str(path).encode():
                yield f"{path.name}: {needle.decode()}"


def exports(run: Path, folder: Path) -> Path:
    """Every form of export, and what Parquet holds in plain text."""
    out = folder / "exports"
    out.mkdir()
    for form in ("csv", "json", "parquet"):
        target = out / f"run.{form}"
        assert main(["export", str(run), "--format", form, "--output", str(target)]) == 0
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO((out / "run.parquet").read_bytes()))
    (out / "parquet.txt").write_text(repr(table.to_pylist()) + repr(table.schema.metadata))
    assert main(["report", str(run), "--output", str(out / "again.html")]) == 0
    return out


def test_a_secret_reaches_the_ranks_and_rests_nowhere(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.run("e.yaml") == 0
    given = bench.given()
    assert given["variables"].items() >= PLANTED.items()
    assert given["variables"]["OPEN"] == "not-secret"
    assert "Planted0" not in json.dumps([given["command"], given["lines"]])
    run = bench.run_folder()
    assert [record.metrics["step_time_s"] for record in read_run(run).records] == [0.375, 0.375]
    assert not [path for path in run.rglob("*") if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert main(["show", str(run)]) == 0
    assert main(["show", str(run), "--details"]) == 0
    assert main(["compare", str(run), str(run)]) == 0
    shown = capsys.readouterr()
    assert "Planted0" not in shown.out + shown.err
    assert not [*places_with_a_secret(run), *places_with_a_secret(exports(run, bench.folder))]
    stored = (run / "experiment.yaml").read_text()
    assert "not-secret" in stored, "what is no secret is stored"
    assert "shown: http://***@proxy:3128" in stored
    assert stored.count("from_environment: true") == 3


def test_a_run_goes_on_with_the_users_environment_and_not_without(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.run("e.yaml") == 0
    run = bench.without_last_record()
    bench.seen.unlink()
    assert bench.run("--resume", str(run)) == 2
    error = capsys.readouterr().err.splitlines()[-2:]
    assert error[0].startswith("broadgauge: `HTTPS_PROXY` is not set in your environment")
    assert error[1].startswith("  hint: export HTTPS_PROXY=")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:Planted0new0one@proxy:3128")
    monkeypatch.setenv("HF_TOKEN", "hf_Planted0rotated")
    assert not bench.seen.exists(), "no rank was started"
    assert bench.run("--resume", str(run)) == 0
    assert bench.given()["variables"]["HF_TOKEN"] == "hf_Planted0rotated"
    assert bench.given()["variables"]["HTTPS_PROXY"] == "http://me:Planted0new0one@proxy:3128"
    assert len(read_run(run).records) == 2
    assert not [*places_with_a_secret(run)]


@pytest.mark.parametrize("scenario", ["tells", "writes"])
def test_what_a_rank_tells_of_a_secret_is_masked_where_it_is_stored(
    bench: Bench, scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.work(scenario)
    assert bench.run("e.yaml", "--set", "launches=1") == 3
    run = bench.run_folder()
    (record,) = read_run(run).records
    assert record.error is not None
    told = (record.error.message, *record.error.last_lines)
    assert any("***" in words for words in told)
    assert main(["show", str(run)]) == 0
    assert main(["show", str(run), "--details"]) == 0
    shown = capsys.readouterr()
    assert "Planted0" not in shown.out + shown.err
    rested = {place.partition(":")[0] for place in places_with_a_secret(run)}
    own_log = {"b0.l0.rank0.log"} if scenario == "writes" else set()
    assert rested == own_log, "what a script writes to its log is its user's"
    assert not [*places_with_a_secret(exports(run, bench.folder))]


def test_a_dry_run_shows_no_value_and_needs_none(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MINE")
    assert bench.run("e.yaml", "--dry-run") == 0
    shown = capsys.readouterr()
    assert 'HF_TOKEN="$HF_TOKEN"' in shown.out
    assert "Planted0" not in shown.out + shown.err
    unset = [line for line in shown.err.splitlines() if "is not set" in line]
    assert unset == ["note       `MINE` is not set in your environment, and a run needs it"]
    assert bench.run("e.yaml") == 2
    assert "`MINE` is not set in your environment" in capsys.readouterr().err
    assert not bench.runs.exists()


def test_a_stored_run_with_secrets_is_a_baseline(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.run("e.yaml") == 0
    before = bench.run_folder()
    assert bench.run("e.yaml", "--against", str(before), "--set", "launches=3") == 0
    assert "same on both sides" in capsys.readouterr().err, "the keys are equal"
    assert not [*places_with_a_secret(bench.runs)]
