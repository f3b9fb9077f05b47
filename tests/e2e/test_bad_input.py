"""Holds that bad input gets one clear message, exit code 2, and no traceback.

One case of each kind is the installed command; the others are asked of its parser in this process,
where a traceback is an exception, since a process costs most of a second.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.driving import run_command, tiny

from broadgauge.cli.main import main


@dataclass(frozen=True)
class Refused:
    """What a command said, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> Refused:
    """In this process, in its current folder."""
    try:
        code = main(arguments)
    except SystemExit as left:  # argparse
        code = left.code if isinstance(left.code, int) else 1
    said = capsys.readouterr()
    return Refused(code, said.out, said.err)


def test_a_mistake_in_a_file_ends_the_command(empty_folder: Path) -> None:
    (empty_folder / "e.yaml").write_text(tiny().replace("rate_gbps", "rate_gps", 1))
    ran = run_command("run", "e.yaml", "--dry-run", folder=empty_folder)
    assert ran.returncode == 2
    assert ran.stderr.startswith("broadgauge: e.yaml:")
    assert "did you mean `rate_gbps`?" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("words", "code"), [("shwo", 2), ("show nowhere", 5)], ids=["parser", "command"]
)
def test_arguments_that_lead_nowhere_end_the_command(
    empty_folder: Path, words: str, code: int
) -> None:
    ran = run_command(*words.split(), folder=empty_folder)
    assert ran.returncode == code
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rate_gbps", "rate_gps", "did you mean `rate_gbps`?"),
        ("100 Mbit/s", "100 MB", "no unit of a rate"),
        ("2x1", "0x1", "1 to 256 nodes"),
        ("2x1", "1000000000x1", "1 to 256 nodes"),
        ("reference", "slow", "two networks are named `slow`"),
        ("kind: train", "kind: train\n    networks: [slwo]", "no network is named `slwo`"),
        ("platform: emulated", "platform: slurm", "planned and not there yet"),
        ("name: tiny", "name: {", "not YAML"),
        ("100 Mbit/s", "[100 Mbit/s, 1 Gb]", "`Gb` is no unit of a rate"),
        ("steps: 4", f"steps: {list(range(4, 100))}", "expands to 96 entries"),
        ("launches: 1", "launches: [1, 2]", "`launches` takes one value, not a list"),
        ("name: tiny", "name: tiny\nextends: quikstart", "did you mean `quickstart`?"),
        ("name: tiny", "name: tiny\nextends: e.yaml", "in a circle: e.yaml → e.yaml"),
        ("name: tiny", "name: tiny\nextends: .", "a folder, not an experiment file"),
        ("name: tiny", "name: tiny\nskip_if: [{netwrok: slow}]", "did you mean `network`?"),
    ],
)
def test_a_mistake_in_a_file(
    empty_folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    (empty_folder / "e.yaml").write_text(tiny().replace(old, new, 1))
    ran = refused(capsys, "run", "e.yaml", "--dry-run")
    assert ran.returncode == 2
    assert ran.stderr.startswith("broadgauge: e.yaml:")
    assert said in ran.stderr
    assert ran.stdout == ""
    assert [path.name for path in empty_folder.iterdir()] == ["e.yaml"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x80\x81\x82", "not a text file"),
        (b"\x7fELF\x02\x01\x01\x00", "not YAML"),
        (b"", "empty"),
        (b"a: &a [*a]\n", "nested more than"),
        (b"- 1\n" * 60_000, "more than 50,000 values"),
    ],
)
def test_files_that_are_no_experiment(
    empty_folder: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str
) -> None:
    (empty_folder / "e.yaml").write_bytes(content)
    ran = refused(capsys, "run", "e.yaml")
    assert ran.returncode == 2
    assert said in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run", "quickstrat"], 2, "did you mean `quickstart`?"),
        (["run", "missing.yaml"], 2, "no such file"),
        (["run", "."], 2, "a folder"),
        (["run", "quickstart", "--set", "launches"], 2, "key=value"),
        (["run", "quickstart", "--set", "extends=own-script"], 2, "stands in the file"),
        (["run", "x" * 300], 2, "too long"),
        (["init", "no/such/folder.yaml"], 2, "can't be written"),
        (["init", "."], 2, "is there already"),
        (["run", "quickstart", "--set", "workloads.trian.steps=4"], 2, "did you mean `train`?"),
        (["run", "--resume", "last", "--set", "launches=1"], 2, "belong to a new run"),
        (["run"], 2, "EXPERIMENT"),
        (["shwo"], 2, "invalid choice"),
        (["shwo"], 2, "did you mean `show`?"),
        (["run", "quickstart", "--launches", "2"], 2, "did you mean `--set launches=…`?"),
        (["run", "--dryrun"], 2, "--dryrun; did you mean `--dry-run`?"),
        (["run", "quickstart", "--dryrun"], 2, "usage: broadgauge run "),
        (["run", "quickstart", "--on", "kubernets"], 2, "did you mean `kubernetes`?"),
        (["show", "last", "more"], 2, "usage: broadgauge show "),
        (["run", "--resume", "nowhere"], 5, "nowhere does not exist"),
        (["show", "nowhere"], 5, "nowhere does not exist"),
        (["show", "last"], 5, "there is no run under runs/"),
        (["show", "."], 5, "no run folder"),
        (["compare", "nowhere", "elsewhere"], 5, "nowhere does not exist"),
        (["export", "nowhere", "--format", "csv"], 5, "nowhere does not exist"),
        (["report", "nowhere"], 5, "nowhere does not exist"),
    ],
)
def test_arguments_that_lead_nowhere(
    empty_folder: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    ran = refused(capsys, *arguments)
    assert ran.returncode == code
    assert said in ran.stderr
    assert list(empty_folder.iterdir()) == []


def test_a_file_that_may_not_be_read(
    empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (empty_folder / "loop.yaml").symlink_to("loop.yaml")
    ran = refused(capsys, "run", "loop.yaml")
    assert ran.returncode == 2
    assert "loop.yaml" in ran.stderr
