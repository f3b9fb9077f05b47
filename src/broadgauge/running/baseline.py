"""Which stored run does `--against` mean, and where do the commands of each arm run?"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from broadgauge.engine.against import Against
from broadgauge.platforms.host_facts import git_commit
from broadgauge.results.folder.lock import is_being_written
from broadgauge.results.folder.reading import StoredRun, read_run
from broadgauge.results.run_path import RUNS_FOLDER, run_path
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError, RunFolderError
from broadgauge.specs.plan import BaselineRun, Plan
from broadgauge.specs.platforms import PlatformKind
from broadgauge.specs.text.reading import read_experiment

SHOWN_COMMIT = 12


def refuse_imported(plan: Plan, path: Path) -> None:
    """Raises InputError for a run that other programs measured."""
    if plan.is_imported:
        raise InputError(
            f"{path} was imported: there is nothing to run again",
            hint="`broadgauge compare A B` compares it with another run",
        )


def read_against(
    text: str,
    platforms: Sequence[PlatformKind],
    fail_above_ratio: float | None = None,
    *,
    runs_folder: Path = Path(RUNS_FOLDER),
) -> Against:
    """The run of this folder (or the `last` one in the folder of runs) as a baseline.

    Raises RunFolderError (no such run) and InputError (it can't be repeated beside this one).
    """
    from broadgauge.results.history import started_unix_s  # numpy: 0.4 s that other runs don't need

    path = run_path(text, runs_folder)
    stored = read_run(path)
    refuse_imported(stored.plan, path)
    try:
        experiment = read_experiment(stored.experiment_yaml, str(stored.folder / "experiment.yaml"))
    except InputError as error:
        raise RunFolderError(str(error)) from error
    if set(experiment.platforms) != set(platforms):
        raise InputError(
            f"the baseline ran with `platform: {', '.join(experiment.platforms)}`, this experiment "
            f"has `platform: {', '.join(platforms)}`",
            hint="both sides run in one go, so on the same platforms: --set platform=…",
        )
    folder = stored.plan.working_folder
    if not Path(folder).is_dir():
        raise InputError(
            f"the baseline's folder {folder} is not there any more",
            hint="its commands and texts are looked for in it: put it back",
        )
    return Against(
        run=BaselineRun(
            run=str(path),
            experiment_name=stored.plan.experiment_name,
            started_unix_s=started_unix_s(stored.folder, stored.records),
            working_folder=folder,
            fail_above_ratio=fail_above_ratio,
        ),
        experiment=experiment,
        notes=(*_progress_notes(stored), *_commit_notes(stored)),
    )


def _progress_notes(stored: StoredRun) -> tuple[str, ...]:
    """Its cases are run again, so it may be unfinished; but one that runs now disturbs."""
    if is_being_written(stored.folder):
        return ("the baseline is being run at this moment: both runs disturb each other",)
    trials = {trial.trial_id for launch in stored.plan.launches for trial in launch.trials}
    left = len(trials - {record.record_id for record in stored.records})
    if not left:
        return ()
    return (f"the baseline was not finished: {left} of its {len(trials)} trials are missing there",)


def _commit_notes(stored: StoredRun) -> tuple[str, ...]:
    """What runs is what is in the folder now: is that what was measured then?"""
    seen = dict.fromkeys(stored.environments[key].git_commit for key in sorted(stored.environments))
    then = [commit for commit in seen if commit is not None]
    now = git_commit(Path(stored.plan.working_folder))
    if not then or now is None or now in then:
        return ()
    return (
        f"the baseline was measured at commit {_short(then[-1])}, and its folder is at "
        f"{_short(now)} now: that is what runs (another checkout: `git worktree add`)",
    )


def _short(commit: str) -> str:
    """`03fee5e3a8bf+`."""
    return commit[:SHOWN_COMMIT] + ("+" if commit.endswith("+") else "")


def arms(plan: Plan) -> Iterator[tuple[tuple[Case, ...], Path]]:
    """The cases of each arm with the folder their commands run in."""
    yield tuple(case for case in plan.cases if case.arm == "candidate"), Path(plan.working_folder)
    if plan.baseline is not None:
        cases = tuple(case for case in plan.cases if case.arm == "baseline")
        yield cases, Path(plan.baseline.working_folder)
