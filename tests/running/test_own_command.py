"""Proves running/kinds/command.py: what a user's command would run, and whether it is there."""

import shlex
import sys
from pathlib import Path

import pytest
from tests.engine.making import a_machine, devices_of

from broadgauge.engine.plan import make_plan
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.running.what_is_started import check_files, prepare_lines, started_lines
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.plan import Plan
from broadgauge.specs.text.reading import read_experiment

EXPERIMENT = """\
name: own
platform: emulated
cluster: {shapes: [2x3], device: cpu}
networks: [{name: reference}]
workloads:
  - kind: command
    name: mine
    command: [train.py, --epochs, "1 2"]
    working_directory: my code
    metrics: [{name: step_s, json_key: step_s}]
launches: 1
"""
RANK_LINES = [
    f"RANK={node} WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=3 GROUP_RANK={node} "
    "MASTER_ADDR=10.80.0.1 MASTER_PORT=29500 python -P -m broadgauge.probes.command"
    for node in range(2)
]


def planned(*overrides: str) -> Plan:
    return make_plan(read_experiment(EXPERIMENT, "e.yaml", overrides), devices_of(a_machine()))


def cases(*overrides: str) -> tuple[Case, ...]:
    return planned(*overrides).cases


FOLDERS = LaunchFolders(logs=Path("/logs"), working=Path("/home"))


def request(*overrides: str) -> LaunchRequest:
    plan = planned(*overrides)
    return LaunchRequest(
        launch_id="b0.l0",
        cases=plan.cases * 2,
        cores_per_node=1,
        limits=plan.limits,
    )


def test_each_node_shows_its_folder_and_torchruns_words() -> None:
    lines = list(started_lines(request(), FOLDERS, RANK_LINES))
    assert lines[::2] == RANK_LINES
    assert len(lines) == 4
    assert lines[3] == (
        f"  cd '/home/my code' && {shlex.quote(sys.executable)} -m torch.distributed.run "
        "--nnodes=2 --nproc-per-node=3 --node-rank=1 --master-addr=10.80.0.1 --master-port=29500 "
        "--log-dir=/logs/b0.l0.rank1.torchrun --redirects=3 train.py --epochs '1 2'"
    )


def test_a_port_that_is_chosen_later_is_shown_as_words() -> None:
    rank_line = RANK_LINES[0].replace("29500", "'<a free port>'")
    lines = list(started_lines(request(), FOLDERS, [rank_line]))
    assert "'--master-port=<a free port>'" in lines[1]


def test_prepare_is_shown_once_from_the_experiments_folder() -> None:
    assert list(prepare_lines(request(), FOLDERS)) == []
    asked = request("workloads.mine.prepare=[wget, a b]")
    assert list(prepare_lines(asked, FOLDERS)) == ["cd /home && wget 'a b'"]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("launches=1", "`command` of mine: no file `train.py` in {folder}/my code"),
        ("launches=1", "did you mean `trian.py`?"),
        ("workloads.mine.command=[deep/modle.py]", "did you mean `deep/model.py`?"),
        ("workloads.mine.working_directory=elsewhere", "no such folder: {folder}/elsewhere"),
        ("workloads.mine.command=[/nowhere/train.py]", "no file `/nowhere/train.py`"),
    ],
)
def test_a_script_that_is_not_there_is_bad_input(tmp_path: Path, override: str, said: str) -> None:
    (tmp_path / "my code" / "deep").mkdir(parents=True)
    (tmp_path / "my code" / "trian.py").touch()
    (tmp_path / "my code" / "deep" / "model.py").touch()
    with pytest.raises(InputError) as caught:
        check_files(cases(override), tmp_path, ("emulated",), is_prepared=False)
    assert said.format(folder=tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    "command", ["[trian.py]", "[-m, my.module]", "[{folder}/my code/trian.py]"]
)
def test_a_script_that_is_there_or_a_module_passes(tmp_path: Path, command: str) -> None:
    (tmp_path / "my code").mkdir()
    (tmp_path / "my code" / "trian.py").touch()
    override = f"workloads.mine.command={command.format(folder=tmp_path)}"
    check_files(cases(override), tmp_path, ("emulated",), is_prepared=False)


def test_what_prepare_fetches_is_looked_for_after_it(tmp_path: Path) -> None:
    fetched = cases("workloads.mine.prepare=[wget, train.py]")
    check_files(fetched, tmp_path, ("emulated",), is_prepared=False)
    with pytest.raises(InputError):
        check_files(fetched, tmp_path, ("emulated",), is_prepared=True)


def test_files_of_other_machines_are_not_looked_for_here(tmp_path: Path) -> None:
    own = cases("launches=1")
    check_files(own, tmp_path, ("hosts",), is_prepared=True)
    on_both = [case.model_copy(update={"platform": "hosts"}) for case in own]
    check_files(on_both, tmp_path, ("emulated", "hosts"), is_prepared=True)
    with pytest.raises(InputError):
        check_files(own, tmp_path, ("local",), is_prepared=True)


def test_a_python_of_the_users_is_shown_and_asked_for_torch(tmp_path: Path) -> None:
    (tmp_path / "my code").mkdir()
    (tmp_path / "my code" / "train.py").touch()
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    own = "workloads.mine.python=venv"
    for script, message in (
        ("echo torch: False", "has no torch"),
        ("echo 'ImportError: No module named util' >&2; exit 1", "no Python 3 .* named util"),
        ("exit 0", "is no Python 3 that runs: it ended with 0"),
    ):
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        with pytest.raises(InputError, match=message):
            check_files(cases(own), tmp_path, ["emulated"], is_prepared=True)
    python.write_bytes(b"\x7fnot a program")
    with pytest.raises(InputError, match="does not run: Exec format error"):
        check_files(cases(own), tmp_path, ["emulated"], is_prepared=True)
    python.write_text("#!/bin/sh\necho torch: True\n")
    check_files(cases(own), tmp_path, ["emulated"], is_prepared=True)
    folders = LaunchFolders(logs=Path("/logs"), working=tmp_path)
    shown = list(started_lines(request(own), folders, RANK_LINES))[1]
    assert f"&& {python} -m torch.distributed.run" in shown
    missing = cases("workloads.mine.python=./no")
    with pytest.raises(InputError, match=r"workload mine: `python: \./no`: no such file"):
        check_files(missing, tmp_path, ["emulated"], is_prepared=True)
    elsewhere = list(started_lines(request("workloads.mine.python=./no"), folders, RANK_LINES))[1]
    assert "&& ./no -m torch.distributed.run" in elsewhere
