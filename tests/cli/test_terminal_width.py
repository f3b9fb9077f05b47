"""Do `cleanup` and `preflight` fit the terminal, and leave what a file or a pipe gets unchanged?"""

import sys
from collections.abc import Callable, Iterator

import pytest
from tests.cli import test_cleanup
from tests.platforms.kubernetes.fake_api import PODS, FakeApi, listed, refused

from broadgauge.cli.main import main
from broadgauge.cli.output import say_sentence, write_sentence
from broadgauge.messages.preflight import PreflightDone, PreflightFinding
from broadgauge.running.preflight import PlatformPreflight

cluster = test_cleanup.cluster
COLUMNS = 60
LONG = "network fast: " + ", ".join(f"node-{number} to node-{number + 1}" for number in range(12))
DONE = PreflightDone(
    lasted_s=1.0,
    names=("node-a", "node-b"),
    networks=("fast",),
    num_calls=2,
    findings=(PreflightFinding(kind="differs", text=LONG),),
    failing=(),
)


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both streams are one, as far as anybody asks. Not in a fixture: pytest has others there."""
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A preflight that was done, and that waited for something."""

    def preflight(_: object, show: Callable[[str], None]) -> Iterator[PlatformPreflight]:
        show(f"waiting for {LONG}")
        yield PlatformPreflight(kind="hosts", done=DONE)

    monkeypatch.setattr("broadgauge.running.preparing.prepare", lambda *_, **__: None)
    monkeypatch.setattr("broadgauge.running.preflight.preflight", preflight)


def fits(text: str) -> bool:
    return all(len(line) < COLUMNS for line in text.splitlines())


def test_a_preflight_fits_the_terminal(
    found: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_a_terminal(monkeypatch)
    assert main(["preflight", "quickstart"]) == 0
    said = capsys.readouterr()
    assert fits(said.out)
    assert fits(said.err)
    assert f"hosts: differs: {LONG}" in " ".join(said.out.split())
    assert f"waiting for {LONG}" in " ".join(said.err.split())


def test_a_preflights_lines_are_whole_in_a_pipe(
    found: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["preflight", "quickstart"]) == 0
    said = capsys.readouterr()
    assert f"hosts: differs: {LONG}\n" in said.out
    assert said.err == f"waiting for {LONG}\n"


def test_a_cleanup_fits_the_terminal(
    cluster: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_a_terminal(monkeypatch)
    cluster.script("GET", PODS, listed(test_cleanup.pod_of("demo")))
    assert main(["cleanup"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("demo (")
    assert fits(said.out)
    assert fits(said.err)
    hint = "delete one with `broadgauge cleanup RUN`, your ended ones with --all; claims stay"
    assert " ".join(said.err.split()) == hint


def test_what_a_cleanup_could_not_list_stays_a_list(
    cluster: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_a_terminal(monkeypatch)
    cluster.script("GET", PODS, refused(403, "Forbidden"))
    main(["cleanup"])
    said = capsys.readouterr().err
    assert fits(said)
    assert "\n  pods in namespace training: you may not list them\n" in said


def test_a_word_that_is_longer_than_the_terminal_stays_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_a_terminal(monkeypatch)
    name = "very-long-" * 10
    say_sentence(f"of {name} nothing is left")
    write_sentence(name)
    said = capsys.readouterr()
    assert (said.out, said.err) == (f"{name}\n", f"of\n    {name}\n    nothing is left\n")
