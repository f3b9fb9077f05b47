"""How does Python run an experiment, or go on with one?"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from broadgauge.api.asking import path_of, run_of, shown
from broadgauge.api.ending import interruptible
from broadgauge.api.progress import OnProgress, Watching
from broadgauge.api.stored_run import Run, open_at
from broadgauge.results.run_path import RUNS_FOLDER
from broadgauge.running.experiments import LoadedExperiment, load, load_text
from broadgauge.running.preparing import RunOptions, prepare
from broadgauge.running.reference import with_reference
from broadgauge.running.starting import FinishedRun, start
from broadgauge.running.starting import resume as resume_run
from broadgauge.specs.errors import InputError
from broadgauge.specs.workloads.workload import Engine

ExperimentLike = str | os.PathLike[str] | Mapping[str, object]
"""A file, the name of an example, or what would stand in the file."""
GIVEN_AS = "experiment"
"""What errors call an experiment that was given as a mapping."""


def run(
    experiment: ExperimentLike,
    *,
    overrides: Mapping[str, object] | None = None,
    engine: Engine | None = None,
    against: str | os.PathLike[str] | None = None,
    fail_above_ratio: float | None = None,
    add_reference: bool = False,
    keep_going: bool = False,
    runs_folder: str | os.PathLike[str] = RUNS_FOLDER,
    progress: OnProgress | None = None,
) -> Run:
    """Runs an experiment to its end and gives what it measured; `broadgauge run` in Python.

    experiment: a file, the name of an example (`"quickstart"`), or a mapping of what would stand
        in the file; a mapping's paths start from the current folder.
    overrides: parts to change, as `--set` does: `{"launches": 3, "workloads.train.steps": 20}`.
    engine: `"nccl-tests"` runs every collective with it, too, beside torch.
    against: a run, its folder or `"last"`, whose cases are repeated beside the experiment's.
    fail_above_ratio: with `against`, the slowdown that is too much, 0.03 for 3 %;
        `compare(run).outcome` says whether there is one.
    add_reference: commands run on an unshaped copy of the fastest network, too.
    keep_going: cases that only fail are run to the end.
    runs_folder: where the run's own folder is made.
    progress: called with a `Progress` for each thing that happens; `print` will do. What it
        raises ends the run in good order, and reaches the caller. None: nothing is told.

    A trial that fails does not raise: see `Run.num_failed` and `Run.errors`. Raises InputError
    (what is asked can't be run), PlatformError (this machine or a host refuses it) and
    RunFolderError (nothing can be stored). Where nodes can't be emulated, what needs no second
    node is run on the local platform, with a warning.

    In the main thread Ctrl-C (a notebook's "interrupt") ends the run in good order and then
    raises KeyboardInterrupt; `resume("last")` goes on. Other threads get no signals: there, raise
    from `progress`. A call blocks an event loop: `await asyncio.to_thread(broadgauge.run, ...)`.

    Example: `broadgauge.run("quickstart", overrides={"launches": 3}, progress=print)`
    """
    watching = Watching(progress)
    with interruptible(watching) as interrupts:
        options = RunOptions(
            runs_folder=path_of("runs_folder", runs_folder),
            against=None if against is None else os.fspath(path_of("against", against)),
            fail_above_ratio=fail_above_ratio,
            keep_going=keep_going,
        )
        if fail_above_ratio is not None and against is None:
            raise InputError("fail_above_ratio needs a baseline", hint='against="last"')
        loaded = load_experiment(experiment, {} if overrides is None else overrides, engine)
        if add_reference:
            loaded = replace(loaded, experiment=with_reference(loaded.experiment))
        prepared = prepare(loaded, options, observer=watching)
        finished = start(prepared, observer=watching, interrupts=interrupts)
        watching.check(finished.result)
    return _opened(finished)


def resume(
    run: str | os.PathLike[str] = "last",
    *,
    runs_folder: str | os.PathLike[str] = RUNS_FOLDER,
    progress: OnProgress | None = None,
) -> Run:
    """Goes on with a run that was ended; `broadgauge run --resume` in Python.

    run: as `open_run` takes it. Trials that are stored are not run again; where none is left, this
        gives the run as it is. progress, threads and Ctrl-C: as `run`.

    Raises InputError (its folder is gone, a secret is not set), PlatformError and RunFolderError.

    Example: `broadgauge.resume("last")`
    """
    watching = Watching(progress)
    with interruptible(watching) as interrupts:
        path = run_of("run", run, runs_folder)
        finished = resume_run(path, observer=watching, interrupts=interrupts)
        watching.check(finished.result)
    return _opened(finished)


def load_experiment(
    experiment: ExperimentLike, overrides: object, engine: Engine | None = None
) -> LoadedExperiment:
    """Raises InputError, and ExperimentError with the place of each problem."""
    if not isinstance(overrides, Mapping):
        hint = 'overrides={"launches": 3}'
        raise InputError(f"overrides={shown(overrides)}: not a mapping of keys", hint=hint)
    texts = tuple(override_texts(overrides))
    if not isinstance(experiment, Mapping):
        return load(os.fspath(path_of("experiment", experiment)), texts, engine)
    return load_text(as_yaml(experiment), Path(GIVEN_AS), texts, engine)


def override_texts(overrides: Mapping[str, object]) -> Iterator[str]:
    """`--set` texts: JSON is YAML, too. Raises InputError."""
    for key, value in overrides.items():
        yield f"{key}={_json(value, f'overrides[{key!r}]')}"


def as_yaml(experiment: Mapping[str, object]) -> str:
    """A line a key, so that a problem's place says more than line 1. Raises InputError."""
    from broadgauge.specs.text.writing import dump_data

    return dump_data(json.loads(_json(experiment, "the experiment")))


def _json(value: object, what: str) -> str:
    """Mappings, lists, texts, numbers, booleans, None and paths. Raises InputError."""

    def plain(other: object) -> object:
        if isinstance(other, os.PathLike):
            return os.fspath(other)
        if isinstance(other, Mapping):
            return dict(other)
        if isinstance(other, Sequence | set):
            return list(other)
        kind = type(other).__name__
        raise InputError(f"{what} holds a value of type {kind}, which no experiment file can hold")

    try:
        return json.dumps(value, default=plain, allow_nan=False, ensure_ascii=False)
    except ValueError as error:
        raise InputError(f"{what} can't be written as YAML: {error}") from None
    except TypeError as error:  # a key that is no text
        raise InputError(f"{what} can't be written as YAML: {error}") from None


def _opened(finished: FinishedRun) -> Run:
    if finished.is_fallback:
        warnings.warn(
            "nodes can't be emulated on this machine: what needs no second node was run on the "
            "local platform (`broadgauge run` says why, and how to fix it)",
            stacklevel=3,
        )
    return open_at(finished.folder, ".")
