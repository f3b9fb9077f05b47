"""Does a dry run for a cluster show what will be there, and nothing of this machine?"""

import sys
from pathlib import Path

import pytest

from broadgauge.cli.main import main
from broadgauge.running.experiments import examples_folder

ON_CLUSTER = ("--on", "kubernetes", "--set", "kubernetes.image=team/train:1")
ALONE = ("--set", "cluster.shapes=[1x1]", "--set", "networks=[]")
HARDWARE = ("machine  ", "NICs  ", "emulation  ", "software  ")


def test_a_run_on_a_cluster_shows_nothing_of_this_machine_and_says_what_is_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "pods", "--dry-run", *ON_CLUSTER]) == 0
    told = capsys.readouterr()
    for words in HARDWARE:
        assert words not in told.err
    for path in (str(examples_folder()), sys.executable, str(tmp_path)):
        assert path not in told.out
    assert "cd '{work}' && python3 -m torch.distributed.run" in told.out
    last = told.out.splitlines()[-1]
    assert last.startswith("filled in where it runs: {master} the first node's address, {port} ")
    for word in ("{interfaces}", "{work}", "{logs}"):
        assert word in last


def test_a_run_on_this_machine_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "own-script", "--dry-run", "--on", "local", *ALONE]) == 0
    told = capsys.readouterr()
    assert "machine  " in told.err
    assert "filled in" not in told.out
