"""What does a run say to Python? Its cases with their verdicts, and its figures as tables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadgauge.analysis.model import AnalysedRun
from broadgauge.analysis.store import read_analysed
from broadgauge.api.asking import path_or_none, run_of, text
from broadgauge.api.case import Case, errors_of, estimate_rows, select_case
from broadgauge.api.display import Displayed, listed, plain_text
from broadgauge.api.table import Table, table_of_rows
from broadgauge.report.export.run_tables import table_of
from broadgauge.report.page.markup import Html, join, tag
from broadgauge.report.page.top import closing_table, disturbed, header_facts, headline
from broadgauge.report.rows.closing import table_rows
from broadgauge.report.terminal.closing import print_closing_table
from broadgauge.report.words.printable import lasting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Run(Displayed):
    """A run folder as it stood when it was opened; a notebook shows its closing table.

    `open_run(run)` reads the folder again, for instance while the run goes on elsewhere.
    """

    _analysed: AnalysedRun

    def __repr__(self) -> str:
        failed = f", {self.num_failed} failed" if self.num_failed else ""
        trials = f"{self.num_ok} of {self.num_planned} trials{failed}"
        return f"<Run {self.experiment}: {trials}, {self.folder}>"

    def __fspath__(self) -> str:
        """A run can stand wherever its folder can."""
        return str(self.folder)

    @property
    def folder(self) -> Path:
        """Where everything is stored."""
        return self._analysed.run.folder

    @property
    def experiment(self) -> str:
        """The experiment's name."""
        return self._analysed.run.plan.experiment_name

    @property
    def cases(self) -> tuple[Case, ...]:
        """In the plan's order, those of a baseline too."""
        judged = self._analysed.analysis.case
        return tuple(Case(each, judged(each.case.key)) for each in self._analysed.run.cases)

    def case(self, label: str | None = None, /, **named: str) -> Case:
        """The one case of this label, or of these names: `run.case(workload="train", shape="2x1")`.

        `named` takes workload, network, shape, arm, backend and platform. Raises InputError where
        no case or several are meant.
        """
        return select_case(self.cases, label, named)

    @property
    def num_ok(self) -> int:
        """Trials that succeeded."""
        return sum(each.num_ok for each in self._analysed.run.cases)

    @property
    def num_failed(self) -> int:
        """Trials that failed or timed out; `errors` says how."""
        return sum(each.num_failed for each in self._analysed.run.cases)

    @property
    def num_planned(self) -> int:
        """Trials in all."""
        return sum(each.num_planned for each in self._analysed.run.cases)

    @property
    def is_complete(self) -> bool:
        """Has every planned trial run? Else `resume(run)` goes on."""
        stored = {record.record_id for record in self._analysed.run.records}
        launches = self._analysed.run.plan.launches
        return all(trial.trial_id in stored for launch in launches for trial in launch.trials)

    @property
    def errors(self) -> tuple[str, ...]:
        """What went wrong in trials, each message once."""
        return errors_of(self._analysed.run.records)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures must know."""
        return (*self._analysed.analysis.notes, *lasting(self._analysed.run.notes))

    @property
    def records(self) -> Table:
        """One row a trial: labels, status and error, every metric, the verdict of its case."""
        return Table("records", table_of(self._analysed, "records"))

    @property
    def collectives(self) -> Table:
        """One row a trial, collective and message size; no rows where none were measured."""
        return Table("collectives", table_of(self._analysed, "collectives"))

    @property
    def estimates(self) -> Table:
        """One row a case and metric: its value over launches with its 95 % interval.

        The unit is in its own column: s, Gbit/s, GB/s, bytes, ratio, 1/s, count. `low` and `high`
        are None below three launches.
        """
        return table_of_rows("estimates", list(estimate_rows(self.cases)))

    @property
    def series_names(self) -> tuple[str, ...]:
        """Of what is kept of single steps and iterations: `step_time_s`, `loss`, …"""
        records = self._analysed.run.records
        return tuple(dict.fromkeys(name for record in records for name in record.series))

    def series(self, name: str = "step_time_s") -> Table:
        """One row a step or iteration of every trial, in the order they ran.

        The column `name` has the value, `index` counts from 0 in each trial. A series of rows of k
        values has the columns `name_0` to `name_<k-1>`. Raises InputError where no trial has such
        a series, and RunFolderError where a file of it can't be read.
        """
        from broadgauge.api.series import series_table

        return series_table(self._analysed.run, text("name", name))

    def array(self, record_id: str, name: str = "step_time_s") -> NDArray[np.float64]:
        """The series of one trial: float64[n], or float64[n, k] for rows of k values.

        Raises InputError where there is no such trial or series, RunFolderError as `series` does.
        """
        from broadgauge.api.series import series_array

        return series_array(self._analysed.run, text("record_id", record_id), text("name", name))

    @property
    def analysis(self) -> dict[str, Any]:
        """Verdicts, findings, comparisons and hypotheses, as `show --json` prints them."""
        found: dict[str, Any] = self._analysed.analysis.model_dump(mode="json")
        return found

    def to_json(self) -> str:
        """All that the folder says, as `export --format json` writes it."""
        from broadgauge.report.export.run_tables import to_json

        return to_json(self._analysed)

    def write_report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """The HTML report, in the run's folder unless told where.

        Returns where it is. Raises RunFolderError where that can't be written.
        """
        from broadgauge.report.page.html import write_report

        return write_report(self._analysed, path_or_none("path", path))

    def _html(self) -> Html:
        run, analysis = self._analysed.run, self._analysed.analysis
        rows = table_rows(run, analysis)
        facts = " · ".join((*header_facts(run), str(run.folder)))
        failed = [" ", tag("span", f"{self.num_failed} failed", class_="badge failed")]
        return join(
            tag("p", run.plan.experiment_name, failed if self.num_failed else "", class_="title"),
            tag("p", facts, class_="faint"),
            disturbed(analysis),
            headline(rows),
            closing_table(rows),
            tag("ul", [_verdict_line(row.title, row.verdict.sentence) for row in rows]),
            listed(self.notes),
        )

    def _plain(self) -> str:
        table = plain_text(partial(print_closing_table, self._analysed))
        return f"{self!r}\n\n{table}" if self._analysed.run.records else repr(self)


def open_at(run: str | os.PathLike[str], runs_folder: str | os.PathLike[str]) -> Run:
    """The run of this folder, or the `last` one. Raises InputError and RunFolderError."""
    return Run(read_analysed(run_of("run", run, runs_folder)))


def _verdict_line(title: str, sentence: str) -> Html:
    bound, colon, why = sentence.partition(": ")
    badge = tag("span", bound, class_=f"badge {bound}")
    return tag("li", f"{title} ", badge, f" {why}" if colon else "")
