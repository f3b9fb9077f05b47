"""Do `show`, `logs` and `runs` say where a run goes on that was left elsewhere, and what collects
it?"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.engine.making import a_plan, make_folder, run_in

from broadgauge.cli.main import main
from broadgauge.platforms.hosts.leader_place import LeaderPlace, leader_file
from broadgauge.platforms.kubernetes.job_place import STATE_FILE, JobPlace, place_file
from broadgauge.results.elsewhere import elsewhere
from broadgauge.results.folder.run_folder import RunFolder

WHERE = "job tiny-1a2b3c in namespace training of context lab"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of which nothing is stored yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")  # paths are not broken
    made = make_folder(tmp_path / "runs", a_plan())
    made.close()
    return made.path


def leave(folder: Path, **changes: Any) -> None:
    """In a cluster."""
    known: dict[str, Any] = {
        "context": "lab",
        "namespace": "training",
        "run": "tiny-1a2b3c",
        "name": "tiny-1a2b3c",
        "kind": "job",
        "number": 0,
    }
    place_file(folder / "logs").write(JobPlace(**known | changes))


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Both streams, however lines were broken."""
    assert main(list(words)) == code
    told = capsys.readouterr()
    return " ".join((told.out + told.err).split())


def test_each_command_names_the_job_and_what_collects_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(folder)
    shown = said(capsys, "show", "last")
    assert "planned trials have no record here: the run goes on in" in shown
    assert "have not run" not in shown
    listed = said(capsys, "runs")
    assert " detached " in listed
    (run,) = json.loads(said(capsys, "runs", "--json"))["runs"]
    assert run["status"] == "detached"
    for text in (shown, listed, said(capsys, "logs", "last", code=2), run["elsewhere"]):
        assert WHERE in text
        assert re.search(rf"`broadgauge run --resume \S*{folder.name}` collects it", text)


def test_of_a_run_that_was_ended_there_it_is_said_that_nothing_has_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(folder, is_gone=True)
    assert elsewhere(folder) is None
    assert "have not run: --resume runs them" in said(capsys, "show", "last")
    assert " unfinished " in said(capsys, "runs")


def test_while_a_tool_follows_it_nobody_is_told_to_collect(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(folder)
    with RunFolder.open_for_resume(folder):
        listed = said(capsys, "runs")
        assert " running " in listed
        assert f"{WHERE}, and a `broadgauge run` on this machine follows it" in listed
        assert "--resume" not in listed


def test_what_was_left_by_a_run_that_is_complete_is_no_run_that_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = make_folder(tmp_path / "runs", a_plan())
    with made:
        run_in(made)
    leave(made.path)
    listed = said(capsys, "runs")
    assert " complete " in listed
    assert WHERE not in listed + said(capsys, "show", "last")


def test_on_hosts_it_is_the_host_that_leads(folder: Path) -> None:
    place = LeaderPlace(host="node-a", python="python3", folder="/tmp/x", zip_hash="0")
    leader_file(folder / "logs").write(place)
    assert "the run goes on under the leader on host node-a" in str(elsewhere(folder))


def test_a_place_that_cannot_be_read_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "logs" / STATE_FILE).write_text("{")
    for words in (["show", "last"], ["runs"]):
        assert "says where the run goes on, and can't be read" in said(capsys, *words)
