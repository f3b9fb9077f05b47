"""How much of a step does the link's rate decide? Asked from Python."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from broadgauge.advise.ladders.ladder import Ladder
from broadgauge.advise.ladders.ladders_of_run import ladders
from broadgauge.advise.ladders.predictions import predicted_steps
from broadgauge.api.asking import PathLike, number, path_of, path_or_none, shown, text
from broadgauge.api.display import Displayed, plain_text, preformatted
from broadgauge.api.ending import interruptible
from broadgauge.api.progress import OnProgress, Watching
from broadgauge.api.run_and_resume import ExperimentLike, load_experiment
from broadgauge.api.stored_run import Run, open_at
from broadgauge.api.table import Table, table_of_rows
from broadgauge.platforms.machine import read_machine
from broadgauge.predict.system.file import read_system
from broadgauge.report.page.markup import Html
from broadgauge.report.predict.ladder_json import ladder_json
from broadgauge.report.predict.sensitivity import print_ladders
from broadgauge.results.run_path import (
    LAST,
    RUNS_FOLDER,
    is_relative_to_last,
    read_summary,
    run_path,
)
from broadgauge.running.ladder import (
    FEWEST_RATES,
    LEAST_GBPS,
    MOST_GBPS,
    MOST_RATES,
    as_ladder,
    check_nodes,
)
from broadgauge.running.preparing import RunOptions, prepare
from broadgauge.running.starting import start
from broadgauge.specs.errors import InputError

WITHIN_RATIO = 0.02


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ladders(Displayed):
    """What `sensitivity` found; a notebook shows what the command prints."""

    run: Run
    """The run that was measured, or was there."""
    _found: tuple[Ladder, ...]

    def __repr__(self) -> str:
        return (
            f"<Ladders: {', '.join(ladder.label for ladder in self._found)} of {self.run.folder}>"
        )

    @property
    def table(self) -> Table:
        """One row a rung of a ladder, from the slowest rate on.

        Columns: label (`train 2x1`), metric (what was taken for the time of a step), network (where
        it was found and its rate measured; else null), rate_gbps (of a node's link), step_time_s
        with the ends step_time_low_s and step_time_high_s of its 95 % interval, curve_s (of the
        fitted curve there).
        """
        return table_of_rows("rungs", [row for each in self._found for row in _rungs(each)])

    @property
    def documents(self) -> tuple[dict[str, object], ...]:
        """A ladder each, as `sensitivity --json` prints it: bytes on the critical path, the time
        that no network removes, the rate beyond which nothing is gained; null where not known."""
        return tuple(ladder_json(ladder) for ladder in self._found)

    def _html(self) -> Html:
        return preformatted(self._plain())

    def _plain(self) -> str:
        return plain_text(partial(print_ladders, self._found))


def sensitivity(
    experiment: ExperimentLike | Run = LAST,
    *,
    rates_gbps: Sequence[float] = (),
    network: str | None = None,
    metric: str | None = None,
    within_ratio: float = WITHIN_RATIO,
    system: PathLike | None = None,
    overrides: Mapping[str, object] | None = None,
    runs_folder: PathLike = RUNS_FOLDER,
    progress: OnProgress | None = None,
) -> Ladders:
    """Runs an experiment's trainings and commands at several link rates, or on the networks that
    hosts and pods have, and says what the rate decides; or says it of a run that has rates enough.

    experiment: as `run` takes it; or a run, its folder, or `"last"`, which is analysed as it is.
    rates_gbps: line rates of a node in Gbit/s, at least three; none: six about those named.
    network: whose MTU, overlay, NICs and delay the rungs have. metric: of a command, what tells
        the time of a step. within_ratio: how near to a network without limit is near enough.
    system: a file of `calibrate` on this machine. overrides, progress, Ctrl-C: as `run`.

    Raises InputError, PlatformError (no nodes can be emulated here) and RunFolderError.

    Example: `sensitivity("my-training.yaml", rates_gbps=[0.2, 0.5, 1, 2])`
    """
    if not 0.001 <= number("within_ratio", within_ratio) <= 1:
        raise InputError(f"within_ratio={within_ratio!r}: no share from 0.001 to 1", hint="0.02")
    network = None if network is None else text("network", network)
    metric = None if metric is None else text("metric", metric)
    file = path_or_none("system", system)
    known_system = None if file is None else read_system(file)  # before anything is measured
    stored = _stored(experiment, path_of("runs_folder", runs_folder))
    if stored is None:
        assert not isinstance(experiment, Run), "a run is stored"
        loaded = load_experiment(experiment, {} if overrides is None else overrides)
        ladder = as_ladder(loaded.experiment, _rates(rates_gbps), network)
        check_nodes(ladder, read_machine())
        watching = Watching(progress)
        with interruptible(watching) as interrupts:
            options = RunOptions(runs_folder=Path(runs_folder))
            prepared = prepare(replace(loaded, experiment=ladder), options, observer=watching)
            finished = start(prepared, observer=watching, interrupts=interrupts)
            watching.check(finished.result)
        stored = finished.folder
    elif rates_gbps or network or overrides:
        raise InputError(
            f"{stored} has been run: its rates, network and settings are what they were",
            hint="name the experiment instead of the run",
        )
    summary = read_summary(stored)
    predicted = predicted_steps(summary, known_system)
    found = ladders(summary, metric=metric, gain_ratio=within_ratio, predicted=predicted)
    return Ladders(open_at(stored, "."), found)


def _stored(experiment: ExperimentLike | Run, runs_folder: Path) -> Path | None:
    """The folder of a run that is meant; None: an experiment is."""
    if isinstance(experiment, Mapping):
        return None
    text = os.fspath(path_of("experiment", experiment))
    if Path(text).is_dir() or is_relative_to_last(text):
        return run_path(text, runs_folder)
    return None


def _rates(rates_gbps: object) -> tuple[float, ...]:
    """Raises InputError."""
    if not isinstance(rates_gbps, Iterable):
        seen = f"rates_gbps={shown(rates_gbps)}: not a list of rates"
        raise InputError(seen, hint="rates_gbps=[0.2, 0.5, 1, 2]")
    rates = tuple(number("rates_gbps", rate) for rate in rates_gbps)
    beyond = next((rate for rate in rates if not LEAST_GBPS <= rate <= MOST_GBPS), None)
    if beyond is not None:
        seen = f"rates_gbps: {beyond:g} is outside of {LEAST_GBPS:g} to {MOST_GBPS:g} Gbit/s"
        raise InputError(seen, hint="rates_gbps=[0.2, 0.5, 1, 2]")
    if rates and not (len(set(rates)) == len(rates) and FEWEST_RATES <= len(rates) <= MOST_RATES):
        raise InputError(
            f"rates_gbps={shown(list(rates))}: not {FEWEST_RATES} to {MOST_RATES} different rates",
            hint="rates_gbps=[0.2, 0.5, 1, 2]",
        )
    return rates


def _rungs(ladder: Ladder) -> list[dict[str, Any]]:
    rungs = () if ladder.found is None else ladder.found.rungs
    return [
        {
            "label": ladder.label,
            "metric": ladder.metric,
            "network": rung.name or None,
            "rate_gbps": rung.rate_gbps,
            "step_time_s": rung.step_s.value,
            "step_time_low_s": rung.step_s.low,
            "step_time_high_s": rung.step_s.high,
            "curve_s": rung.fitted_s,
        }
        for rung in rungs
    ]
