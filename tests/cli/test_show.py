"""Is `show` short, `--details` all there is, and `--json` what is stored and nothing else?"""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from broadgauge.cli.main import main
from broadgauge.cli.start_and_show import show_finished
from broadgauge.engine.run_result import count_results
from broadgauge.results.folder.reading import read_run
from broadgauge.running.starting import FinishedRun

GOLDEN = Path(__file__).parents[1] / "results/golden/schema-1"


def test_json_is_the_stored_analysis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(shutil.copytree(GOLDEN, tmp_path / "run"))
    assert main(["show", str(run), "--json"]) == 0
    first = capsys.readouterr().out
    assert first == (run / "analysis.json").read_text()
    assert {case["verdict"]["bound"] for case in json.loads(first)["cases"]} >= {"compute-bound"}
    assert main(["show", str(run), "--json"]) == 0
    assert capsys.readouterr().out == first


def test_it_is_short_and_says_how_to_see_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    run = str(shutil.copytree(GOLDEN, tmp_path / "run"))
    assert main(["show", run]) == 0
    short = capsys.readouterr().out
    assert short.startswith(f"golden: {run}\n")
    (command,) = re.findall(r"show \S+ --details$", short.rstrip())
    assert main(shlex.split(command)) == 0
    details = capsys.readouterr().out
    assert len(details.splitlines()) > 5 * len(short.splitlines())
    for words in ("RuntimeError: scripted", "Environment", "Evidence", "retransmits"):
        assert words in details
        assert words not in short
    with pytest.raises(SystemExit, match="2"):
        main(["show", run, "--details", "--json"])


def test_a_run_ends_as_it_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    folder = Path(shutil.copytree(GOLDEN, tmp_path / "run"))
    stored = read_run(folder)
    result = count_results(stored.plan, stored.records, "run", None)
    assert show_finished(FinishedRun(folder=folder, location="run", result=result)) == 3
    ended = capsys.readouterr().out
    assert main(["show", "run"]) == 0
    title, shown = capsys.readouterr().out.split("\n", 1)
    assert title == f"golden: {folder}"
    assert shown == ended


def test_report_and_export_keep_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["report"], ["export", "--format", "csv"], ["show"]):
        run = Path(shutil.copytree(GOLDEN, tmp_path / command[0]))
        assert main([command[0], str(run), *command[1:]]) == 0
        assert (run / "analysis.json").is_file(), command
    capsys.readouterr()


def test_a_price_that_is_given_is_in_every_view(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(shutil.copytree(GOLDEN, tmp_path / "run"))
    page = tmp_path / "page.html"
    price = ("--usd-per-node-hour", "2", "--tokens", "1B")
    assert main(["show", run, *price]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "$/10⁹ tokens" in words
    assert "$2 for a node and hour (as given)" in words
    assert main(["report", run, "--output", str(page), *price]) == 0
    assert "1B tokens" in page.read_text()
    capsys.readouterr()
    assert main(["export", run, "--to", "csv", *price]) == 0
    assert "$2 for a node and hour (as given)" in capsys.readouterr().out
    stored = (Path(run) / "analysis.json").read_text()
    assert "$" not in stored, "prices are of the day of looking"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--usd-per-gpu-hour", "cheap"), "hint: --usd-per-gpu-hour 2.95, in US dollars"),
        (("--usd-per-node-hour", "inf"), "--usd-per-node-hour inf: not a price"),
        (("--usd-per-gpu-hour", "1", "--usd-per-node-hour", "2"), "one of them"),
        (("--tokens", "many"), "hint: --tokens 300B, or 1.5T"),
    ],
)
def test_what_is_no_price_is_refused(
    flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(GOLDEN), *flags]) == 2
    assert said in capsys.readouterr().err
