"""Is B faster than A? Two cases of one run, pair by pair, or one case of two runs.

Inside a run the schedule interleaves the cases, so trials of one block are a pair. Two runs were
not interleaved: whatever changed on the machine between them is in the ratio, and it is said.
"""

from collections.abc import Iterable
from dataclasses import replace

from broadgauge.results.comparing.blocks import ValueOf, blocks_of, has_only_positive
from broadgauge.results.comparing.by_size import size_ratios
from broadgauge.results.comparing.environments import environment_differences, perhaps_different
from broadgauge.results.comparing.run_matching import alone, match_cases
from broadgauge.results.kinds.registry import in_results
from broadgauge.results.model import CaseComparison, CaseSummary, RunComparison, RunSummary
from broadgauge.results.statistics import (
    PairedComparison,
    compare_paired,
    compare_unpaired,
)
from broadgauge.specs.case import Case, CaseName, counterpart_name
from broadgauge.specs.records.record import Record


def metric_of(name: str) -> ValueOf:
    """Reads one metric of a record."""

    def value_of(record: Record) -> float | None:
        return record.metrics.get(name)

    return value_of


def by_launch(records: Iterable[Record], value_of: ValueOf) -> list[list[float]]:
    """The values of each launch, in the order the launches ran; empty launches are left out."""
    groups: dict[str, list[float]] = {}
    for record in records:
        value = value_of(record)
        if value is not None:
            groups.setdefault(record.launch_id, []).append(value)
    return list(groups.values())


def compare_in_blocks(
    a: CaseSummary, b: CaseSummary, value_of: ValueOf
) -> tuple[PairedComparison | None, bool]:
    """How many times A is B inside one run, and was it paired by block?

    Positions in the block give the order that the drift is fitted by. Blocks that a resume tore
    apart are left out, and it is said. Where no pair is left (a case was resumed alone), the two
    are compared as unpaired. None: nothing to compare, or a value that is not positive, of which
    no ratio can be had.
    """
    blocks = blocks_of(a, b, value_of)
    is_paired = bool(blocks.pairs)
    if not has_only_positive(blocks):
        return None, is_paired
    if is_paired:
        comparison = compare_paired(blocks.pairs)
    else:
        comparison = compare_unpaired(blocks.a_alone, blocks.b_alone)
    return _with_note(comparison, blocks.note), is_paired


def _with_note(comparison: PairedComparison, note: str) -> PairedComparison:
    """The ratio by itself says it too, where it goes without its comparison."""
    if not note:
        return comparison
    ratio = replace(comparison.ratio, method=f"{comparison.ratio.method}; {note}")
    return replace(comparison, ratio=ratio, notes=(*comparison.notes, note))


def headline_metrics(summary: CaseSummary) -> tuple[str, ...]:
    """Which metrics say how fast this case is?"""
    return in_results(summary.case.workload).headline_metrics


def direction_of(summary: CaseSummary, metric: str) -> str:
    """Is less or more of it better? The user says so for metrics of a command."""
    return in_results(summary.case.workload).direction_of(metric)


def compare_cases(a: CaseSummary, b: CaseSummary, metric: str) -> CaseComparison | None:
    """How many times A is B, both of one run? None where either has no such figure."""
    if metric not in a.estimates or metric not in b.estimates:
        return None
    comparison, is_paired = compare_in_blocks(a, b, metric_of(metric))
    return _row(a, b, metric, comparison, is_paired=is_paired)


def _row(
    a: CaseSummary,
    b: CaseSummary,
    metric: str,
    comparison: PairedComparison | None,
    *,
    is_paired: bool,
) -> CaseComparison:
    """One line of a comparison, the ratio being had already."""
    return CaseComparison(
        a_label=a.case.label,
        b_label=b.case.label,
        metric=metric,
        direction=direction_of(a, metric),
        a=a.estimates[metric],
        b=b.estimates[metric],
        comparison=comparison,
        is_paired=is_paired,
        notes=_comparison_notes(comparison),
        by_size=size_ratios(a, b, metric),
    )


def _comparison_notes(comparison: PairedComparison | None) -> tuple[str, ...]:
    if comparison is None:
        return ("no ratio: a value is zero or negative",)
    return comparison.notes


def against_reference(run: RunSummary) -> tuple[CaseComparison, ...]:
    """How does each network do against the fastest one, workload by workload and shape by shape?

    The reference is the unshaped network, else the one with the highest line rate of all its NICs;
    of networks that were found the first.
    """
    rows: list[CaseComparison] = []
    for reference in run.cases:
        if reference is not run.fastest_of(reference):
            continue
        for peer in run.same_work(reference):
            if peer is reference or not _is_other_network(reference.case, peer.case):
                continue
            for metric in headline_metrics(reference)[:1]:
                row = compare_cases(reference, peer, metric)
                if row is not None:
                    rows.append(row)
    return tuple(rows)


def _is_other_network(a: Case, b: Case) -> bool:
    """Of two imported cases all but their labels has to be equal, or nobody knows what differs."""
    if a.imported is None or b.imported is None:
        return b.link is not None
    is_alike = a.imported.settings == b.imported.settings and a.workload == b.workload
    return is_alike and a.imported.label != b.imported.label


def between_platforms(run: RunSummary) -> tuple[CaseComparison, ...]:
    """How does each case do on another platform than the one named first, all else being equal?"""
    first: dict[CaseName, CaseSummary] = {}
    rows: list[CaseComparison] = []
    for summary in run.candidates:
        if summary.case.platform is None:
            continue
        reference = first.setdefault(counterpart_name(summary.case), summary)
        if reference is summary:
            continue
        metrics = headline_metrics(summary)
        found = (compare_cases(reference, summary, metric) for metric in metrics)
        rows += [row for row in found if row is not None]
    return tuple(rows)


def fastest_peer(summary: CaseSummary, run: RunSummary) -> CaseSummary | None:
    """The same workload and shape on the fastest network; None where that is the case itself."""
    best = run.fastest_of(summary)
    return None if best is summary else best


def compare_runs(a: RunSummary, b: RunSummary) -> RunComparison:
    """Is run B different from run A, for every case that both have?

    Cases match by key, the hash of everything that decides what was measured; what is left, by
    the names that `--against` goes by, and then it is said what was changed. Baselines that ran
    beside them are left out.
    """
    matched = match_cases(a, b)
    rows: list[CaseComparison] = []
    for pair in matched:
        has = (pair.a.estimates, pair.b.estimates)
        metrics = [m for m in headline_metrics(pair.a) if all(m in each for each in has)]
        rows.extend(compare_across_runs(pair.a, pair.b, metric) for metric in metrics)
    differences = environment_differences(a.environments, b.environments)
    notes = ["The runs were not interleaved: what changed between them is in every ratio."]
    if differences:
        notes.append("The environments differ: a ratio may be theirs and not the change you made.")
    if unknown := perhaps_different(a.environments, b.environments):
        notes.append(f"Unknown in both runs, so perhaps different: {', '.join(unknown)}.")
    return RunComparison(
        a=a,
        b=b,
        rows=tuple(rows),
        only_in_a=alone(a.candidates, [pair.a for pair in matched]),
        only_in_b=alone(b.candidates, [pair.b for pair in matched]),
        setting_differences={
            pair.a.case.label: pair.differences for pair in matched if pair.differences
        },
        environment_differences=differences,
        notes=tuple(notes),
    )


def compare_across_runs(a: CaseSummary, b: CaseSummary, metric: str) -> CaseComparison:
    """How many times A is B, of two runs that were not interleaved? Both have the metric."""
    value_of = metric_of(metric)
    a_values, b_values = by_launch(a.good, value_of), by_launch(b.good, value_of)
    is_positive = all(value > 0 for launch in (*a_values, *b_values) for value in launch)
    comparison = compare_unpaired(a_values, b_values) if is_positive else None
    return _row(a, b, metric, comparison, is_paired=False)
