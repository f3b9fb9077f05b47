"""How do two runs compare, or the networks, platforms and arms of one?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from broadgauge.api.asking import ratio, run_of
from broadgauge.api.display import Displayed, listed, plain_text
from broadgauge.api.table import Table, table_of_rows
from broadgauge.report.page.markup import Html, join, table, tag
from broadgauge.report.terminal.compare import compared_name, finding, print_rows
from broadgauge.report.terminal.printing import print_gate, print_runs_compared
from broadgauge.report.words.gate import GATE_HEAD, gate_cells, gate_sentences
from broadgauge.report.words.links import reference_words
from broadgauge.report.words.quantities import interval, show, title_of
from broadgauge.results.comparing.arms import arms_compared, of_arm
from broadgauge.results.comparing.compare_cases import (
    against_reference,
    between_platforms,
    compare_runs,
)
from broadgauge.results.comparing.gate import gate, gate_across_runs
from broadgauge.results.comparing.run_matching import check_any
from broadgauge.results.run_path import RUNS_FOLDER, read_summary
from broadgauge.specs.errors import InputError

if TYPE_CHECKING:
    from broadgauge.results.comparing.gate import Gate
    from broadgauge.results.model import CaseComparison, RunComparison, RunSummary
    from broadgauge.specs.estimate import Estimate

HEAD = ("case", "metric", "A", "B", "B / A", "95 % interval")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedGroup:
    """Comparisons of one kind."""

    of: str
    """networks, platforms, baseline or runs."""
    words: str
    """What A and B are."""
    rows: tuple[CaseComparison, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Displayed):
    """What `compare` found; a notebook shows it as a table with a sentence a row."""

    _groups: tuple[ComparedGroup, ...]
    notes: tuple[str, ...]
    """What a reader must know: what else differs, which cases only one run has."""
    _gate: Gate | None
    _runs: RunComparison | None

    def __repr__(self) -> str:
        of = ", ".join(f"{len(group.rows)} of {group.of}" for group in self._groups)
        return f"<Comparison: {of or 'nothing to compare'}>"

    @property
    def table(self) -> Table:
        """One row a comparison and metric.

        Columns: of (networks, platforms, baseline or runs), a and b (labels), metric, direction
        (which way is better), a_value and b_value (means over launches), ratio (of B over A, with
        the ends ratio_low and ratio_high of its 95 % interval), verdict (`different`, `no
        difference seen`, `can't tell`), is_paired, finding (the same in words).
        """
        rows = [_row(group.of, row) for group in self._groups for row in group.rows]
        return table_of_rows("comparison", rows)

    @property
    def outcome(self) -> str | None:
        """With a limit: `regression`, `no regression` or `can't tell`; None without one."""
        return None if self._gate is None else self._gate.outcome.value

    @property
    def reason(self) -> str | None:
        """Of the outcome, in words."""
        return None if self._gate is None else self._gate.reason

    def _html(self) -> Html:
        return join(
            [_group_html(group) for group in self._groups],
            "" if self._gate is None else _gate_html(self._gate),
            tag("p", "Nothing to compare.") if not self._groups else "",
            listed(self.notes),
        )

    def _plain(self) -> str:
        return plain_text(self._print) or repr(self)

    def _print(self, console: Console) -> None:
        if self._runs is not None:
            print_runs_compared(self._runs, console)
        for group in self._groups if self._runs is None else ():
            console.print(group.words)
            print_rows(group.rows, console)
        if self._gate is not None:
            print_gate(self._gate, console)


def compare(
    a: str | os.PathLike[str] = "last",
    b: str | os.PathLike[str] | None = None,
    *,
    fail_above_ratio: float | None = None,
    runs_folder: str | os.PathLike[str] = RUNS_FOLDER,
) -> Comparison:
    """Compares the networks, platforms and arms of one run, or two runs.

    a, b: a run, its folder, `"last"` or `"last~1"`. Without `b`, the cases of `a` against those of
        its baseline (`run(..., against=...)`), its platforms, and its networks against the
        fastest, paired block by block. With `b`, each case that both have, by its settings or
        else its names; two runs were not interleaved, so what else changed is in every ratio.
    fail_above_ratio: the slowdown that is too much, 0.03 for 3 %; `outcome` then says whether
        there is one.

    Raises RunFolderError where a run can't be read, InputError for a limit without a baseline, and
    for two runs that have no case in common.

    Example: `broadgauge.compare("last").table.to_pandas()`
    """
    if fail_above_ratio is not None:
        fail_above_ratio = ratio("fail_above_ratio", fail_above_ratio, "0.03")
    first = read_summary(run_of("a", a, runs_folder))
    if b is None:
        return _within(first, fail_above_ratio)
    runs = compare_runs(first, read_summary(run_of("b", b, runs_folder)))
    check_any(runs)
    words = f"{runs.b.folder.name} (B) against {runs.a.folder.name} (A), not interleaved"
    only = ((runs.only_in_a, "A"), (runs.only_in_b, "B"))
    alone = [f"only in {name}: {label}" for labels, name in only for label in labels]
    changed = [f"{label}: {', '.join(what)}" for label, what in runs.setting_differences.items()]
    return Comparison(
        _groups=(ComparedGroup(of="runs", words=words, rows=runs.rows),),
        notes=(*runs.notes, *changed, *runs.environment_differences, *alone),
        _gate=None if fail_above_ratio is None else gate_across_runs(runs, fail_above_ratio),
        _runs=runs,
    )


def _within(run: RunSummary, limit_ratio: float | None) -> Comparison:
    baseline = run.plan.baseline
    if baseline is None and limit_ratio is not None:
        raise InputError(
            f"{run.folder} has no baseline to fail above",
            hint="run(EXPERIMENT, against=RUN) measures one beside it",
        )
    arms = () if baseline is None else arms_compared(run)
    of_which = "" if baseline is None else f" {baseline.run}"
    groups = (
        ComparedGroup(
            of="baseline",
            words=f"the experiment (B) against its baseline{of_which} (A), paired block by block",
            rows=arms,
        ),
        ComparedGroup(
            of="platforms",
            words="each case on another platform (B) against the first one's (A)",
            rows=between_platforms(run),
        ),
        ComparedGroup(
            of="networks",
            words=f"each network (B) against {reference_words(run)} (A), paired block by block",
            rows=against_reference(of_arm(run, "candidate")),
        ),
    )
    return Comparison(
        _groups=tuple(group for group in groups if group.rows),
        notes=run.notes,
        _gate=None if limit_ratio is None else gate(run, limit_ratio),
        _runs=None,
    )


def _row(of: str, row: CaseComparison) -> dict[str, Any]:
    found = row.comparison
    ratio = None if found is None else found.ratio
    return {
        "of": of,
        "a": row.a_label,
        "b": row.b_label,
        "metric": row.metric,
        "direction": row.direction,
        "a_value": row.a.value,
        "b_value": row.b.value,
        "ratio": None if ratio is None else ratio.value,
        "ratio_low": None if ratio is None else ratio.low,
        "ratio_high": None if ratio is None else ratio.high,
        "verdict": None if found is None else found.verdict.value,
        "is_paired": row.is_paired,
        "finding": finding(row),
    }


def _group_html(group: ComparedGroup) -> Html:
    words = f"{group.words[:1].upper()}{group.words[1:]}."
    rows = [_cells(row) for row in group.rows]
    found = [f"{compared_name(row)}: {finding(row)}" for row in group.rows]
    return join(tag("p", words), table(HEAD, rows), tag("ul", [tag("li", each) for each in found]))


def _cells(row: CaseComparison) -> Sequence[str]:
    ratio: Estimate | None = None if row.comparison is None else row.comparison.ratio
    return (
        compared_name(row),
        title_of(row.metric),
        show(row.metric, row.a.value),
        show(row.metric, row.b.value),
        "–" if ratio is None else show("speedup_ratio", ratio.value),
        "–" if ratio is None else interval("speedup_ratio", ratio),
    )


def _gate_html(found: Gate) -> Html:
    outcome = f"{found.outcome.value}: {found.reason}"
    return join(
        table(GATE_HEAD, [gate_cells(row) for row in found.rows]) if found.rows else "",
        listed(gate_sentences(found)),
        tag("p", f"Fail above {show('change_ratio', found.limit_ratio)}: {outcome}."),
    )
