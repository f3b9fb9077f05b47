"""What do the checkpoints of a training cost it, whose save did the others wait for, and which
checkpoint is left where the trial failed?
"""

import itertools
from collections.abc import Iterator, Sequence

from broadgauge.advise.limits import (
    CHECKPOINT_SHARE,
    DAY_S,
    DAYS_BETWEEN_FAILURES,
    STRAGGLING_SAVE,
    STRAGGLING_STEP_RATIO,
)
from broadgauge.predict.storage.checkpoint_interval import best_interval_s, lost_share
from broadgauge.specs.case import Case
from broadgauge.specs.checkpoint_rows import CheckpointRow, last_complete
from broadgauge.specs.checkpoints import Checkpoints
from broadgauge.specs.record import Confidence, Finding, Record, Severity, Status
from broadgauge.specs.units import show_ratio, show_time


def straggling_checkpoint(case: Case, record: Record) -> Iterator[Finding]:
    """One finding a rank, of its worst save: the others' waiting is the checkpoint's, wherever a
    training meets it, and neither data loading's nor the network's. Where rank 0 saves for all, all
    wait for it by design."""
    asked = _asked(case)
    if asked is not None and not asked.is_sharded:
        return
    late = [row for row in record.checkpoints if _is_straggling(row, record)]
    late.sort(key=lambda row: row.slowest_rank or 0)
    for rank, of_rank in itertools.groupby(late, key=lambda row: row.slowest_rank):
        rows = list(of_rank)
        worst = max(rows, key=_excess_s)
        part = max(worst.parts_s, key=lambda name: worst.parts_s[name], default=None)
        yield Finding(
            rule="checkpoint-straggler",
            severity=Severity.WARNING,
            symptom=f"all ranks waited for rank {rank}'s checkpoint",
            evidence=(
                f"after step {worst.after_step}: {show_time(worst.slowest_stall_s or 0.0)}, where "
                f"the other ranks' took {show_time(worst.others_stall_s or 0.0)}",
                f"{len(rows)} of {len(record.checkpoints)} checkpoints, "
                f"{show_time(sum(map(_excess_s, rows)))} in all",
                *_part_evidence(worst, part),
            ),
            cause=f"the checkpoint, not data loading and not the network: rank {rank} saves later "
            "than the others",
            fix=f"look at what rank {rank} writes to (its disk, mount or link), and whether it "
            "writes more than the others; `format: dcp-async` takes the write out of the step",
            confidence=Confidence.CERTAIN,
        )


def _excess_s(row: CheckpointRow) -> float:
    return (row.slowest_stall_s or 0.0) - (row.others_stall_s or 0.0)


def _is_straggling(row: CheckpointRow, record: Record) -> bool:
    step_s = record.metrics.get("step_time_s")
    if row.slowest_rank is None or row.others_stall_s is None or not step_s:
        return False
    is_longer = (row.slowest_stall_s or 0.0) >= STRAGGLING_SAVE * row.others_stall_s
    return is_longer and _excess_s(row) >= STRAGGLING_STEP_RATIO * step_s


def _part_evidence(row: CheckpointRow, part: str | None) -> tuple[str, ...]:
    if part is None:
        return ()
    return (f"of it {part.replace('_', ' ')} {show_time(row.parts_s[part])}",)


def checkpoint_share(case: Case, record: Record) -> Iterator[Finding]:
    """What saving takes of the training, what would take less, and how often to save."""
    share, stall_s = (
        record.metrics.get(name) for name in ("checkpoint_share_ratio", "checkpoint_stall_s")
    )
    asked = _asked(case)
    if share is None or not stall_s or asked is None or share < CHECKPOINT_SHARE:
        return
    stalls = [row.stall_s for row in record.checkpoints if row.stall_s is not None]
    yield Finding(
        rule="checkpoint-share",
        severity=Severity.INFO,
        symptom=f"checkpoints take {show_ratio(share)} of the measured training",
        evidence=(
            f"stalls / (steps + stalls), {len(stalls)} stalls of {show_time(stall_s)} on average",
            *map(_interval_words, _durations(record), itertools.repeat(stall_s)),
        ),
        cause=f"training stands still for a save every {asked.every_steps} steps",
        fix=_fix(asked, record.checkpoints),
    )


def _asked(case: Case) -> Checkpoints | None:
    return case.workload.saving


def _durations(record: Record) -> tuple[tuple[float, float | None], ...]:
    """Mean times between failures that the interval is told for, with the time to durable."""
    durable_s = record.metrics.get("time_to_durable_s")
    return tuple((days * DAY_S, durable_s) for days in DAYS_BETWEEN_FAILURES)


def _interval_words(failures: tuple[float, float | None], stall_s: float) -> str:
    """Source: Young 1974, in predict/storage/checkpoint_interval.py."""
    between_s, durable_s = failures
    interval_s = best_interval_s(stall_s, between_s)
    lost = lost_share(
        interval_s,
        stall_s=stall_s,
        durable_s=durable_s,
        mean_time_between_failures_s=between_s,
    )
    days = "a day" if between_s == DAY_S else f"{between_s / DAY_S:.0f} days"
    return (
        f"with a failure every {days}: a save every {show_time(interval_s)} "
        f"(√(2 × {show_time(stall_s)} × {days}), Young) loses least, {show_ratio(lost.ratio, 2)} "
        "with the work done again"
    )


def _fix(asked: Checkpoints, rows: Sequence[CheckpointRow]) -> str:
    """The first that helps, in the order of what it gives."""
    waits_s = sum(row.in_flight_s for row in rows)
    stalls_s = sum(row.slowest_stall_s or 0.0 for row in rows)
    if waits_s > stalls_s / 2:
        return "save less often: a save is still in flight when the next one is due"
    if not asked.is_sharded:
        return "`is_sharded: true`: each rank saves its part, instead of rank 0 all of it"
    if not asked.format.startswith("dcp-async"):
        return "`format: dcp-async`: training waits for the copy to memory, not for the storage"
    return "save less often, or on a storage that takes the bytes sooner"


def last_durable_checkpoint(_case: Case, record: Record) -> Iterator[Finding]:
    """Of a trial that failed: what would a job go on from?"""
    rows = record.checkpoints
    if record.status is Status.OK or not rows:
        return
    last = last_complete(rows)
    lost = [row for row in rows if last is None or row.after_step > last.after_step]
    yield Finding(
        rule="last-durable-checkpoint",
        severity=Severity.WARNING,
        symptom=_last_words(last),
        evidence=tuple(
            f"the one after step {row.after_step} was lost: {row.problem}" for row in lost
        ),
        cause="the trial ended while the next one was being saved" if lost else None,
        fix=None
        if last is None
        else f"go on from step {last.after_step}: what was done after it is done again",
        confidence=Confidence.CERTAIN if lost else None,
    )


def _last_words(last: CheckpointRow | None) -> str:
    if last is None:
        return "no checkpoint was complete when the trial failed: a job begins from the start"
    durable = "durable" if last.durable_s is not None else "complete, not known to be durable"
    name = f" ({last.name})" if last.name else ""
    return f"the last {durable} checkpoint is the one after step {last.after_step}{name}"
