"""Proves running/: a run is a function that prints nothing, tells its observer, and can go on."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.engine.fake_platform import FakeClock, FakePlatform, Script
from tests.engine.making import COMMAND, TRAIN, a_machine, an_experiment

from broadgauge.agent.taken_cores import TakenCores
from broadgauge.engine.events import LaunchStarting, Noted, RecordWritten, RunEnded, RunStarted
from broadgauge.engine.interrupts import Interrupts
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.running.dry_run import dry_run
from broadgauge.running.events import FolderOpened, NodesRefused, PlanMade, RunEvent
from broadgauge.running.experiments import LoadedExperiment
from broadgauge.running.preparing import RunOptions, prepare
from broadgauge.running.starting import resume, start
from broadgauge.specs.errors import ExitCode, InputError, PlatformError
from broadgauge.specs.platforms import PlatformKind
from broadgauge.specs.secrets.values import Secrets


def loaded(folder: Path, **changes: Any) -> LoadedExperiment:
    return LoadedExperiment(experiment=an_experiment(**changes), source="tiny.yaml", folder=folder)


@dataclass
class Platforms:
    """Gives fake platforms, and keeps what was asked for."""

    script: Script = field(default_factory=Script)
    made: list[tuple[PlatformKind, LaunchFolders, FakePlatform]] = field(default_factory=list)

    def __call__(
        self, kind: PlatformKind, folders: LaunchFolders, secrets: Secrets
    ) -> FakePlatform:
        del secrets
        platform = FakePlatform(FakeClock(), self.script)
        self.made.append((kind, folders, platform))
        return platform


@pytest.fixture
def options(tmp_path: Path) -> RunOptions:
    return RunOptions(runs_folder=tmp_path / "runs")


def test_a_run_is_a_function_of_experiment_platform_and_options(
    tmp_path: Path, options: RunOptions, capfd: pytest.CaptureFixture[str]
) -> None:
    told: list[RunEvent] = []
    platforms = Platforms()
    prepared = prepare(loaded(tmp_path), options, machine=a_machine(), observer=told.append)
    finished = start(prepared, observer=told.append, platform_of=platforms)
    assert finished.exit_code is ExitCode.OK
    assert finished.result.num_ok == finished.result.num_trials > 0
    assert finished.folder.parent == options.runs_folder
    ((kind, folders, platform),) = platforms.made
    assert (kind, folders.logs, folders.working) == ("emulated", finished.folder / "logs", tmp_path)
    assert platform.is_closed
    records = [event for event in told if isinstance(event, RecordWritten)]
    assert len(records) == finished.result.num_trials
    kinds = [type(event) for event in told]
    assert kinds.index(PlanMade) < kinds.index(FolderOpened) < kinds.index(RecordWritten)
    assert isinstance(told[-1], RunEnded)
    assert capfd.readouterr() == ("", "")


class Shared(FakePlatform):
    """A platform that has looked at its machines."""

    taken_cores: ClassVar = {
        name: TakenCores(foreign_busy_ratio=ratio, stolen_ratio=0.0, elapsed_s=0.5, cores_count=4)
        for name, ratio in (("one", 0.6), ("two", 0.0), ("three", 0.25))
    }


@pytest.mark.parametrize("kinds", [["emulated"], ["emulated", "local"]])
def test_busy_machines_are_said_before_the_first_launch(
    kinds: list[str], tmp_path: Path, options: RunOptions
) -> None:
    """Once, where several platforms use them; not where nothing is left to measure."""
    told: list[RunEvent] = []
    changes = {"platform": kinds, "cluster": {"shapes": ["1x1"], "device": "cpu"}}
    prepared = prepare(loaded(tmp_path, workloads=[TRAIN], **changes), options, machine=a_machine())
    finished = start(
        prepared, observer=told.append, platform_of=lambda *_: Shared(FakeClock(), Script())
    )
    notes = [event.text for event in told if isinstance(event, Noted)]
    assert [note for note in notes if "cores" in note] == [
        "other programs use 60 % of one's cores: expect wide intervals",
        "other programs use 25 % of three's cores: expect wide intervals",
    ]
    moments = [type(event) for event in told]
    assert moments.index(FolderOpened) < moments.index(Noted) < moments.index(RunStarted)
    assert moments.index(RunStarted) < moments.index(LaunchStarting)
    finished_again: list[RunEvent] = []
    resume(
        finished.folder,
        observer=finished_again.append,
        platform_of=lambda *_: Shared(FakeClock(), Script()),
    )
    assert not [each for each in finished_again if isinstance(each, Noted) and "cores" in each.text]


def test_a_platform_that_looked_at_nothing_says_nothing(
    tmp_path: Path, options: RunOptions
) -> None:
    told: list[RunEvent] = []
    prepared = prepare(loaded(tmp_path), options, machine=a_machine())
    start(prepared, observer=told.append, platform_of=Platforms())
    assert not [event for event in told if isinstance(event, Noted)]


def test_a_run_that_was_ended_goes_on_where_it_stood(tmp_path: Path, options: RunOptions) -> None:
    interrupts = Interrupts()

    def end(step: str) -> None:
        if step.startswith("b1.l1.t1 "):
            interrupts.request(15)

    prepared = prepare(loaded(tmp_path), options, machine=a_machine())
    platforms = Platforms(Script(on_step=end))
    ended = start(prepared, interrupts=interrupts, platform_of=platforms)
    assert ended.exit_code is ExitCode.TERMINATED
    assert 0 < ended.result.num_ok < ended.result.num_trials
    before = (ended.folder / "records.jsonl").read_bytes()
    finished = resume(ended.folder, platform_of=Platforms())
    assert finished.exit_code is ExitCode.OK
    assert finished.folder == ended.folder
    assert (ended.folder / "records.jsonl").read_bytes().startswith(before)


def test_what_the_platform_noted_meanwhile_is_told_once(
    tmp_path: Path, options: RunOptions
) -> None:
    told: list[RunEvent] = []
    platforms = Platforms()

    def note(step: str) -> None:
        if step.startswith("start"):
            platforms.made[0][2].notes = ("nothing here is real", "cores are shared")

    platforms.script = Script(on_step=note)
    prepared = prepare(loaded(tmp_path), options, machine=a_machine())
    start(prepared, observer=told.append, platform_of=platforms)
    assert [event.text for event in told if isinstance(event, Noted)] == ["cores are shared"]


def test_refused_nodes_give_what_runs_on_one_node_and_say_so(
    tmp_path: Path, options: RunOptions
) -> None:
    told: list[RunEvent] = []
    refusing = replace(a_machine(), can_emulate=False, refusal="no", fix="be root")
    prepared = prepare(loaded(tmp_path), options, machine=refusing, observer=told.append)
    assert [type(event) for event in told].count(NodesRefused) == 1
    assert prepared.experiment.platform == "local"
    platforms = Platforms()
    finished = start(prepared, platform_of=platforms)
    assert platforms.made[0][0] == "local"
    assert finished.exit_code is ExitCode.PLATFORM_REFUSED
    failing = Platforms(Script(launch_errors={"b0.l0": PlatformError("no more")}))
    with pytest.raises(PlatformError, match="no more"):
        start(prepared, platform_of=failing)


def test_a_dry_run_is_data_and_leaves_nothing(
    tmp_path: Path, options: RunOptions, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").touch()
    workloads = [COMMAND | {"prepare": ["fetch", "it"]}]
    prepared = prepare(loaded(tmp_path, workloads=workloads), options, machine=a_machine())
    would_run = dry_run(prepared, platform_of=_with_variables)
    assert would_run.plan is prepared.plan
    assert len(would_run.launches) == len(prepared.plan.cases)
    assert would_run.launches[0].prepare == (f"cd {tmp_path} && fetch it",)
    assert any("train.py" in line for line in would_run.launches[0].ranks)
    assert not options.runs_folder.exists()
    assert capfd.readouterr() == ("", "")


def test_a_dry_run_for_gpus_needs_none(tmp_path: Path, options: RunOptions) -> None:
    """Nor torch: what would run is known from what the platform is said to have."""
    asked = replace(options, assumed_gpus=2)
    on_gpus = loaded(
        tmp_path,
        platform="local",
        cluster={"shapes": ["1xauto"], "device": "cuda"},
        networks=[],
        workloads=[TRAIN],
    )
    bare = replace(a_machine(), torch=None)
    prepared = prepare(on_gpus, asked, machine=bare)
    assert [case.label for case in prepared.plan.cases] == ["train 1x2 one node"]
    (launch,) = dry_run(prepared).launches
    assert ["CUDA_VISIBLE_DEVICES=" in line for line in launch.ranks] == [True, True]
    with pytest.raises(InputError, match="assumed GPUs run nothing"):
        start(prepared, platform_of=Platforms())
    with pytest.raises(InputError, match="and this machine has no GPU"):
        prepare(on_gpus, options, machine=bare)


def _with_variables(kind: PlatformKind, folders: LaunchFolders, secrets: Secrets) -> FakePlatform:
    del kind, folders, secrets
    platform = FakePlatform(FakeClock())
    line = "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 GROUP_RANK=0 "
    line += "MASTER_ADDR=127.0.0.1 MASTER_PORT=1 python"
    platform.rank_commands = lambda request: (line,)  # type: ignore[method-assign]
    return platform


def test_a_prepare_step_that_fails_leaves_no_folder(tmp_path: Path, options: RunOptions) -> None:
    workloads = [COMMAND | {"prepare": ["false"]}]
    prepared = prepare(loaded(tmp_path, workloads=workloads), options, machine=a_machine())
    with pytest.raises(InputError, match="ended with exit code 1"):
        start(prepared, platform_of=Platforms())
    assert not options.runs_folder.exists()


@pytest.mark.parametrize("missing", ["train.py", "torch"])
def test_what_is_missing_is_said_before_anything_is_written(
    tmp_path: Path, options: RunOptions, missing: str
) -> None:
    machine = a_machine() if missing == "train.py" else replace(a_machine(), torch=None)
    with pytest.raises(InputError, match=missing):
        prepare(loaded(tmp_path, workloads=[COMMAND]), options, machine=machine)


def test_runs_are_put_together_in_one_place() -> None:
    """Whatever measures something calls `start`: no second assembly of engine and platform."""
    code = Path(__file__).parents[2] / "src" / "broadgauge"
    engine = re.compile(r"from broadgauge\.engine\.run import [\w, ]*\brun\b")
    callers = [path.name for path in code.rglob("*.py") if engine.search(path.read_text())]
    assert callers == ["starting.py"]
