"""Proves cli/baseline.py and the flags of a baseline: which run is meant, and what is refused."""

import subprocess
from pathlib import Path

import pytest
from tests.engine.fake_platform import FakeClock, FakePlatform, Script, an_environment, services
from tests.engine.fake_script import Failure
from tests.engine.making import COMMAND, a_machine, devices_of

from broadgauge.cli.main import main
from broadgauge.engine.plan import make_plan
from broadgauge.engine.run import run
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.running.baseline import arms, read_against
from broadgauge.specs.errors import InputError, RunFolderError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.records.record import ErrorKind
from broadgauge.specs.text.writing import dump_experiment

STARTED_S = 1_700_000_000.0


def stored_run(parent: Path, working: Path, commit: str | None = None) -> Path:
    """A finished run of a command in this folder, on the fake platform."""
    experiment = Experiment.model_validate(
        {
            "name": "own",
            "platform": "local",
            "cluster": {"shapes": ["1x1"], "device": "cpu"},
            "workloads": [COMMAND],
            "launches": 3,
        }
    )
    plan = make_plan(experiment, devices_of(a_machine()), working_folder=str(working))
    folder = RunFolder.create(
        parent,
        plan=plan,
        experiment_yaml=dump_experiment(experiment),
        started_unix_s=STARTED_S,
    )
    clock = FakeClock()
    script = Script(environment=lambda _: an_environment(git_commit=commit))
    with folder:
        run(plan, FakePlatform(clock, script), folder, services(clock))
    return folder.path


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git checkout with one commit."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "train.py").write_text("print('epoch 1')\n")
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "one")):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return folder


def head(folder: Path) -> str:
    command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_stored_run_is_read_with_its_folder_and_time(tmp_path: Path) -> None:
    path = stored_run(tmp_path, tmp_path)
    against = read_against(str(path), ["local"], 0.03)
    assert against.run.run == str(path)
    assert against.run.working_folder == str(tmp_path)
    assert against.run.fail_above_ratio == 0.03
    assert against.experiment.launches == 3
    assert against.notes == ()
    planned = make_plan(
        against.experiment, devices_of(a_machine()), working_folder="/elsewhere", against=against
    )
    assert [(len(cases), folder) for cases, folder in arms(planned)] == [
        (1, Path("/elsewhere")),
        (1, tmp_path),
    ]


def test_a_folder_that_has_moved_on_is_said(checkout: Path, tmp_path: Path) -> None:
    now = head(checkout)
    same = stored_run(tmp_path / "a", checkout, commit=now)
    assert read_against(str(same), ["local"]).notes == ()
    moved = stored_run(tmp_path / "b", checkout, commit="0" * 40 + "+")
    (note,) = read_against(str(moved), ["local"]).notes
    assert f"at commit {'0' * 12}+, and its folder is at {now[:12]} now" in note


def test_what_cannot_be_a_baseline_is_refused(tmp_path: Path) -> None:
    working = tmp_path / "code"
    working.mkdir()
    path = stored_run(tmp_path, working)
    with pytest.raises(InputError, match="the baseline ran with `platform: local`"):
        read_against(str(path), ["emulated"])
    working.rmdir()
    with pytest.raises(InputError, match="is not there any more"):
        read_against(str(path), ["local"])
    with pytest.raises(RunFolderError, match="does not exist"):
        read_against(str(tmp_path / "none"), ["local"])
    (path / "experiment.yaml").write_text("name: own\nlater: 1\n")
    with pytest.raises(RunFolderError, match="unknown key `later`"):
        read_against(str(path), ["local"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "quickstart", "--fail-above", "3%"], "--fail-above needs a baseline"),
        (["run", "quickstart", "--against", "x", "--fail-above", "3"], "not `3`"),
        (["run", "--resume", "x", "--against", "y"], "--resume goes on with the plan"),
        (["run", "--resume", "x", "--fail-above", "3%"], "--resume goes on with the plan"),
        (["compare", "x", "y", "--fail-above", "much"], "not `much`"),
        (["run", "{own}", "--engine", "nccl-tests"], "has no collectives to run"),
    ],
)
def test_flags_that_do_not_fit_are_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "name: own\nplatform: local\ncluster: {shapes: [1x1]}\nworkloads: [{kind: train}]\n"
    )
    assert main([word.format(own=own) for word in arguments]) == 2
    assert said in capsys.readouterr().err


def test_stored_runs_are_gated_by_exit_code_only_where_interleaved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (str(stored_run(tmp_path / name, tmp_path)) for name in "ab")
    assert main(["compare", one, other]) == 0
    assert main(["compare", one, other, "--fail-above", "3%"]) == 7
    assert "not interleaved" in capsys.readouterr().out
    assert main(["compare", one, "--fail-above", "3%"]) == 2
    assert "has no baseline to fail above" in capsys.readouterr().err


@pytest.mark.parametrize(("slower", "code"), [(1.0, 0), (1.05, 6)])
def test_a_run_against_a_baseline_is_gated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], slower: float, code: int
) -> None:
    against = read_against(str(stored_run(tmp_path / "old", tmp_path)), ["local"])
    new = tmp_path / "new"
    new.mkdir()
    plan = make_plan(
        against.experiment, devices_of(a_machine()), working_folder=str(new), against=against
    )
    folder = RunFolder.create(
        tmp_path, plan=plan, experiment_yaml="name: own\n", started_unix_s=STARTED_S
    )
    script = Script(
        time_s=lambda moment: moment.ideal_s * (slower if moment.case.arm == "candidate" else 1)
    )
    clock = FakeClock()
    with folder:
        run(plan, FakePlatform(clock, script), folder, services(clock))
    assert main(["compare", str(folder.path)]) == 0
    assert main(["compare", str(folder.path), "--fail-above", "3%"]) == code
    assert f"fail above 3 %: {'regression' if code else 'no regression'} (1 of 1 cases)" in (
        capsys.readouterr().out
    )


def test_a_candidate_that_crashes_now_and_then_is_not_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    against = read_against(str(stored_run(tmp_path / "old", tmp_path)), ["local"])
    experiment = against.experiment.model_copy(update={"launches": 10})
    new = tmp_path / "new"
    new.mkdir()
    plan = make_plan(experiment, devices_of(a_machine()), working_folder=str(new), against=against)
    plan = plan.model_copy(update={"keep_going": True})
    own = [
        trial.trial_id
        for launch in plan.launches
        for trial in launch.trials
        if plan.case(trial.case_key).arm == "candidate"
    ]
    folder = RunFolder.create(
        tmp_path, plan=plan, experiment_yaml="name: own\n", started_unix_s=STARTED_S
    )
    clock = FakeClock()
    script = Script(failures=dict.fromkeys(own[:6], Failure(kind=ErrorKind.CRASHED)))
    with folder:
        run(plan, FakePlatform(clock, script), folder, services(clock))
    assert main(["compare", str(folder.path)]) == 0
    assert "6 of 20 trials failed" in " ".join(capsys.readouterr().out.split())
    assert main(["compare", str(folder.path), "--fail-above", "3%"]) == 7
    said = " ".join(capsys.readouterr().out.split())
    assert "the candidate failed in 6 of 10 launches (6 failed), the baseline in none" in said
