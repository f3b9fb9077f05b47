"""Proves agent/pod/main.py, a pod's first process, with a torchrun that says what it was given."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import pythons
from tests.agent.pod.started_pods import TWO, Pod, ended, read_until


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path)


@pytest.mark.parametrize("python", [pythons.oldest, pythons.newest])
def test_each_launch_is_one_torchrun_with_a_port_of_its_own(
    pod: Pod, python: Callable[[], str]
) -> None:
    words = ["train.py", "--name", "a b", "--", "$x", "--nodes=9"]
    code, log = pod.run(
        *TWO, "--launches", "2", "--", *words, python=python(), JOB_COMPLETION_INDEX="1"
    )
    assert code == 0, log
    assert [each["words"] for each in pod.told] == [
        ["--nnodes=2", "--nproc-per-node=4", "--node-rank=1", "--master-addr=127.0.0.1",
         f"--master-port={port}", "--rdzv-conf=timeout=1800", *words]
        for port in (29500, 29501)
    ]  # fmt: skip
    assert {each["folder"] for each in pod.told} == {str(pod.work)}
    assert "broadgauge: node 1 of 2" in log
    assert "--name 'a b' -- '$x'" in log
    assert "broadgauge: 2 launches are done" in log


def test_what_another_launcher_was_told_is_not_passed_on(pod: Pod) -> None:
    """An operator's variables: torchrun would take its own defaults from these."""
    code, log = pod.run(*TWO, "--", "train.py", JOB_COMPLETION_INDEX="0", RANK="0", WORLD_SIZE="2",
                        PET_NNODES="9", MASTER_ADDR="x", HF_HOME="/data")  # fmt: skip
    assert code == 0, log
    environment = pod.told[0]["environment"]
    assert isinstance(environment, dict)
    assert not {"RANK", "WORLD_SIZE", "PET_NNODES", "MASTER_ADDR"} & environment.keys()
    assert (environment["HF_HOME"], environment["BROADGAUGE_LAUNCH"]) == ("/data", "0")


def test_what_was_sent_is_copied_where_ranks_may_write(pod: Pod) -> None:
    """A ConfigMap's folder: links to a hidden one, and read-only."""
    files = pod.folder / "files"
    (files / "..data" / "conf").mkdir(parents=True)
    (files / "..data" / "train.py").write_text("1")
    (files / "..data" / "conf" / "a.json").write_text("{}")
    (files / "train.py").symlink_to("..data/train.py")
    (files / "conf").symlink_to("..data/conf")
    one = ("--nodes", "1", "--ranks-per-node", "1")
    code, log = pod.run(*one, "--files", str(files), "--subfolder", "conf", "--", "x")
    assert code == 0, log
    assert pod.told[0]["folder"] == str(pod.work / "conf")
    assert sorted(path.relative_to(pod.work).as_posix() for path in pod.work.rglob("*")) == [
        *("conf", "conf/a.json", "train.py"),
    ]
    assert not (pod.work / "train.py").is_symlink()


def test_a_launch_that_fails_ends_the_pod_with_its_exit_code(pod: Pod) -> None:
    code, log = pod.run("--nodes", "1", "--ranks-per-node", "1", "--launches", "3", "--", "x",
                        EXIT_1="42")  # fmt: skip
    assert code == 42
    assert len(pod.told) == 2
    assert "broadgauge: launch 2 ended with exit code 42" in log


@pytest.mark.parametrize("variables", [{}, {"JOB_COMPLETION_INDEX": "2"}, {"RANK": "x"}])
def test_a_pod_that_does_not_know_its_number_starts_nothing(
    pod: Pod, variables: dict[str, str]
) -> None:
    code, log = pod.run(*TWO, "--", "x", **variables)
    assert code == 2
    assert "which of 2 nodes is this pod? JOB_COMPLETION_INDEX or PET_NODE_RANK or RANK" in log
    assert not (pod.folder / "told").exists()


def test_a_folder_that_cant_be_made_is_told(pod: Pod) -> None:
    (pod.folder / "scratch").write_text("a file")
    code, log = pod.run("--nodes", "1", "--ranks-per-node", "1", "--", "x")
    assert code == 2
    assert "scratch/work can't be made: " in log


def test_the_end_of_a_pod_is_torchruns_end(pod: Pod) -> None:
    """Kubernetes sends SIGTERM to the first process alone, which no signal ends by itself."""
    process = pod.start(
        "--nodes", "1", "--ranks-per-node", "1", "--launches", "2", "--", "x", HANG="1"
    )
    read_until(process, "hangs")
    process.send_signal(signal.SIGTERM)
    code, log = ended(process)
    assert code == 128 + signal.SIGTERM, log
    assert len(pod.told) == 1


def test_a_topology_file_is_held_against_the_bus_of_the_pod(pod: Pod, tmp_path: Path) -> None:
    """Without a launch being kept from it: NCCL leaves out what it does not find."""
    file = tmp_path / "topo.xml"
    file.write_text('<system><pci busid="ffff:ff:1f.7" class="0x030200"/></system>')
    for path, words in ((file, "another machine's"), (tmp_path / "none", "can't be read")):
        code, log = pod.run(*TWO, "--", "a.py", RANK="0", NCCL_TOPO_FILE=str(path))
        assert code == 0
        assert f"NCCL_TOPO_FILE={path}" in log
        assert words in log
