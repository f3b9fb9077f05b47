"""What does a run say? Records → one summary a case, with estimates over launches."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from broadgauge.results.comparing.blocks import ValueOf, pauses_of
from broadgauge.results.comparing.compare_cases import by_launch, compare_in_blocks, metric_of
from broadgauge.results.comparing.partners import smallest_world
from broadgauge.results.elsewhere import elsewhere
from broadgauge.results.folder.reading import StoredRun, read_run
from broadgauge.results.kinds.registry import in_results
from broadgauge.results.model import (
    CaseSummary,
    CollectiveSummary,
    PairSummary,
    RunSummary,
    Scaling,
)
from broadgauge.results.network_share import FEWEST_FOR_INTERVAL, SHARE, share_of_launches
from broadgauge.results.statistics import mean_of_launches
from broadgauge.specs.case import Case
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.failures import NOT_AGAIN
from broadgauge.specs.records.op_rows import AnyOpRow, MessageRow
from broadgauge.specs.records.pair_rates import RankPair, pair_rate_gbyte_per_s
from broadgauge.specs.records.record import Environment, Record, Status
from broadgauge.specs.workloads.metrics import is_part, may_be_negative


def summarise_run(
    *,
    folder: Path,
    plan: Plan,
    records: Sequence[Record],
    experiment_yaml: str,
    environments: Mapping[str, Environment],
    notes: Iterable[str] = (),
    left: str | None = None,
) -> RunSummary:
    """What does a run say, case by case, in the plan's order? `left`: where it goes on,
    in words (elsewhere.py)."""
    planned: dict[str, int] = {}
    for launch in plan.launches:
        for trial in launch.trials:
            planned[trial.case_key] = planned.get(trial.case_key, 0) + 1
    by_case: dict[str, list[Record]] = {}
    for record in records:
        by_case.setdefault(record.case_key, []).append(record)
    pauses = pauses_of(records, plan.limits)
    alone = [
        replace(
            summarise_case(
                case,
                tuple(by_case.get(case.key, ())),
                num_planned=planned.get(case.key, 0),
            ),
            pauses=pauses,
        )
        for case in plan.cases
    ]
    by_workload: dict[str, list[CaseSummary]] = {}
    for summary in alone:
        by_workload.setdefault(summary.case.workload.name, []).append(summary)
    return RunSummary(
        folder=folder,
        plan=plan,
        experiment_yaml=experiment_yaml,
        records=tuple(records),
        cases=tuple(
            replace(summary, scaling=_scaling(summary, by_workload[summary.case.workload.name]))
            for summary in alone
        ),
        environments=environments,
        notes=(*plan.notes, *notes, *_notes(plan, records, left)),
    )


def summarise_stored(path: Path) -> RunSummary:
    """What does the run of this folder say? Raises RunFolderError."""
    return summarise_read(read_run(path))


def summarise_read(stored: StoredRun) -> RunSummary:
    """The same of a folder that has been read."""
    return summarise_run(
        folder=stored.folder,
        plan=stored.plan,
        records=stored.records,
        experiment_yaml=stored.experiment_yaml,
        environments=stored.environments,
        notes=stored.notes,
        left=elsewhere(stored.folder),
    )


def summarise_case(
    case: Case, records: tuple[Record, ...], *, num_planned: int | None = None
) -> CaseSummary:
    """What do the trials of one case say? Only those that succeeded count in an estimate."""
    good = [record for record in records if record.status is Status.OK]
    estimates: dict[str, Estimate] = {}
    for name in {name: None for record in good for name in record.metrics}:
        estimate = estimate_over(good, metric_of(name), is_difference=may_be_negative(name))
        if estimate is not None:
            estimates[name] = cut_at_whole(estimate) if is_part(name) else estimate
    share = share_of_launches(good)
    if share is not None:
        estimates[SHARE] = share.estimate()
    missing = {
        name: reason
        for record in reversed(good)
        for name, reason in record.missing.items()
        if name not in estimates
    }
    points = _rows_by_point(good)
    return CaseSummary(
        case=case,
        records=records,
        estimates=estimates,
        missing=missing,
        collectives=tuple(
            _collective(point, rows) for point, rows in points.items() if point.curve.ends is None
        ),
        pairs=tuple(
            _pair(point, point.curve.ends, rows)
            for point, rows in points.items()
            if point.curve.ends is not None
        ),
        num_ok=len(good),
        num_failed=sum(r.status in (Status.FAILED, Status.TIMEOUT) for r in records),
        num_planned=len(records) if num_planned is None else num_planned,
        ceiling_gbps=estimate_over(good, lambda r: r.link.ceiling_gbps if r.link else None),
        eight_streams_gbps=estimate_over(
            good, lambda r: r.link.eight_streams_gbps if r.link else None
        ),
        round_trip_s=estimate_over(good, lambda r: r.link.round_trip_s if r.link else None),
    )


def estimate_over(
    records: Iterable[Record], value_of: ValueOf, *, is_difference: bool = False
) -> Estimate | None:
    """The mean over launches of what each trial gives; None where no trial gives anything.

    With two launches the t interval is 18 times as wide as their distance from the mean: none is
    given. What can't be negative has no interval below 0; of a difference all of it counts.
    """
    launches = by_launch(records, value_of)
    if not launches:
        return None
    estimate = mean_of_launches(launches)
    if estimate.launches < FEWEST_FOR_INTERVAL:
        return replace(estimate, low=None, high=None)
    if is_difference or estimate.low is None or min(map(min, launches)) < 0:
        return estimate
    return replace(estimate, low=max(estimate.low, 0.0))


def cut_at_whole(estimate: Estimate) -> Estimate:
    """Of a part of a whole: no interval reaches beyond all of it, and it is said."""
    if estimate.high is None or estimate.high <= 1 or estimate.value > 1:
        return estimate
    return replace(estimate, high=1.0, method=f"{estimate.method}, cut at 100 %")


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCurve:
    """What is measured at several sizes."""

    measured_by: str
    """torch or nccl-tests."""
    op: str
    dtype: str
    ends: RankPair | None
    """Of messages between two ranks; None: a collective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One of its sizes, which every trial measures again."""

    curve: SizeCurve
    size_bytes: int


Rows = list[tuple[Record, AnyOpRow]]


def _rows_by_point(good: Sequence[Record]) -> dict[CurvePoint, Rows]:
    """What was measured again and again, in the order first measured, smallest size first."""
    found: dict[CurvePoint, Rows] = {}
    for record in good:
        for row in record.collectives:
            found.setdefault(_point(row), []).append((record, row))
    curves = {c: place for place, c in enumerate(dict.fromkeys(point.curve for point in found))}
    ordered = sorted(found, key=lambda point: (curves[point.curve], point.size_bytes))
    return {point: found[point] for point in ordered}


def _point(row: AnyOpRow) -> CurvePoint:
    ends = (row.from_rank, row.to_rank) if isinstance(row, MessageRow) else None
    curve = SizeCurve(measured_by=row.measured_by, op=row.op, dtype=row.dtype, ends=ends)
    return CurvePoint(curve=curve, size_bytes=row.size_bytes)


def _over_rows(rows: Rows, field: str | Callable[[AnyOpRow], float | None]) -> Estimate | None:
    """One field of the same row in every trial, or what is made of the row."""
    read = attrgetter(field) if isinstance(field, str) else field
    values: dict[str, float | None] = {record.record_id: read(row) for record, row in rows}
    records = [record for record, _ in rows]
    return estimate_over(records, lambda record: values[record.record_id])


def _collective(point: CurvePoint, rows: Rows) -> CollectiveSummary:
    checks = [row.is_correct for _, row in rows]
    return CollectiveSummary(
        op=point.curve.op,
        dtype=point.curve.dtype,
        size_bytes=point.size_bytes,
        engine=point.curve.measured_by,
        time_s=_always(_over_rows(rows, "time_s")),
        algbw_gbyte_per_s=_always(_over_rows(rows, "algbw_gbyte_per_s")),
        busbw_gbyte_per_s=_always(_over_rows(rows, "busbw_gbyte_per_s")),
        link_rate_gbps=_over_rows(rows, "link_rate_gbps"),
        amplification_ratio=_over_rows(rows, "amplification_ratio"),
        is_correct=False if False in checks else (True if True in checks else None),
    )


def _pair(point: CurvePoint, ends: RankPair, rows: Rows) -> PairSummary:
    return PairSummary(
        from_rank=ends[0],
        to_rank=ends[1],
        dtype=point.curve.dtype,
        size_bytes=point.size_bytes,
        time_s=_always(_over_rows(rows, "time_s")),
        rate_gbyte_per_s=_always(_over_rows(rows, pair_rate_gbyte_per_s)),
        link_rate_gbps=_over_rows(rows, "link_rate_gbps"),
    )


def _always(estimate: Estimate | None) -> Estimate:
    assert estimate is not None, "a row always has these"
    return estimate


def _scaling(summary: CaseSummary, all_cases: Sequence[CaseSummary]) -> Scaling | None:
    """What does a rank do here against a rank of the smallest shape, pair by pair?"""
    partner = smallest_world(summary, all_cases, needs_results=True)
    smallest = partner.summary
    if smallest is None or partner.is_itself:
        return None
    for metric in in_results(summary.case.workload).scaling_metrics:
        if metric not in summary.estimates or metric not in smallest.estimates:
            continue
        comparison, is_paired = compare_in_blocks(smallest, summary, metric_of(metric))
        if comparison is None:
            continue
        ranks = summary.case.world_size / smallest.case.world_size
        method = f"{comparison.ratio.method}{'' if is_paired else ', not paired'}"
        speedup = replace(comparison.ratio, method=method)
        return Scaling(
            reference=smallest.case,
            metric=metric,
            efficiency=_times(speedup, 1 / ranks),
            speedup=speedup,
            notes=comparison.notes,
        )
    return None


def _times(estimate: Estimate, factor: float) -> Estimate:
    return replace(
        estimate,
        value=estimate.value * factor,
        low=None if estimate.low is None else estimate.low * factor,
        high=None if estimate.high is None else estimate.high * factor,
    )


def _notes(plan: Plan, records: Sequence[Record], left: str | None) -> tuple[str, ...]:
    """What must a reader know of the run as a whole?"""
    notes: list[str] = []
    planned = {trial.trial_id for launch in plan.launches for trial in launch.trials}
    missing = len(planned - {record.record_id for record in records})
    failed = sum(r.status in (Status.FAILED, Status.TIMEOUT) for r in records)
    skipped = sum(r.status is Status.SKIPPED for r in records)
    if plan.growths:
        added = sum(growth.num_launches for growth in plan.growths)
        times = "once" if len(plan.growths) == 1 else f"{len(plan.growths)} times"
        notes.append(f"the plan grew {times} while it ran, by {added} launches in all")
    if missing:
        counted = f"{missing} of {len(planned)} planned trials"
        told = "not run: --resume runs them" if left is None else f"no record here: {left}"
        notes.append(f"{counted} have {told}")
    if failed:
        notes.append(f"{failed} of {len(records)} trials failed; no figure counts them")
    if skipped:
        would_fail = any(
            (r.error.message if r.error else "").startswith(NOT_AGAIN) for r in records
        )
        why = ", as their cases only failed before: --keep-going runs them" if would_fail else ""
        notes.append(f"{skipped} of {len(records)} trials were skipped{why}")
    seen: dict[str, set[str]] = {}
    for record in records:
        if record.environment is not None:
            seen.setdefault(record.case_key, set()).add(record.environment)
    changed = sum(len(environments) > 1 for environments in seen.values())
    if changed:
        notes.append(f"the environment changed between the trials of {changed} cases")
    return tuple(notes)
