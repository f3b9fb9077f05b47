"""What did checkpoints cost a training? Sentences for below a case's metrics."""

from collections.abc import Iterator

from broadgauge.report.quantities import show
from broadgauge.results.model import CaseSummary
from broadgauge.results.saved_checkpoints import SavedCheckpoints, saved_checkpoints
from broadgauge.specs.checkpoint_rows import CheckpointRow
from broadgauge.specs.units import show_count, show_ratio, show_size, show_time

HOUR_S = 3600.0


def checkpoint_words(summary: CaseSummary) -> tuple[str, ...]:
    """None where nothing was saved."""
    saved = saved_checkpoints(summary)
    return () if saved is None else tuple(_words(summary, saved))


def _words(summary: CaseSummary, saved: SavedCheckpoints) -> Iterator[str]:
    trials = "1 trial" if saved.num_trials == 1 else f"{saved.num_trials} trials"
    size = show_size(max(row.num_bytes for row in saved.rows))
    yield f"{len(saved.rows)} checkpoints of {size} were saved in {trials}: {_costs(summary)}"
    slowest = saved.slowest
    if slowest is not None:
        yield f"the longest stall: {_stall(slowest)}"
    beside = [row for row in saved.rows if row.slowed_s is not None]
    if beside:
        slowed_s = sum(row.slowed_s or 0.0 for row in beside)
        steps = sum(row.steps_beside for row in beside)
        yield (
            f"{steps} steps ran while a checkpoint was written in the background, each "
            f"{show_time(slowed_s / steps, 2)} longer than a step beside none"
        )
    unknown = [row for row in saved.rows if row.durable_s is None and row.durable_evidence]
    if unknown:
        yield f"of {len(unknown)} it is not known when they were durable: " + (
            unknown[0].durable_evidence
        )


def _costs(summary: CaseSummary) -> str:
    """With the share of an hour that one save takes, as published tables have it."""
    stall_s, durable_s = (
        summary.value(name) for name in ("checkpoint_stall_s", "time_to_durable_s")
    )
    share = summary.value("checkpoint_share_ratio")
    told = []
    if stall_s is not None:
        told.append(
            f"training stands still for {show('checkpoint_stall_s', stall_s)} each, "
            f"{show_ratio(stall_s / HOUR_S, 2)} of an hour where one is saved every hour"
        )
    if share is not None:
        told.append(f"{show_ratio(share, 2)} of the measured training")
    if durable_s is not None:
        told.append(f"durable after {show('time_to_durable_s', durable_s)}")
    return "; ".join(told) or "what they took is not known"


def _stall(row: CheckpointRow) -> str:
    words = f"{show_time(row.stall_s or 0.0)} after step {show_count(row.after_step)}"
    if row.slowest_rank is not None and row.slowest_stall_s is not None:
        words += (
            f", rank {row.slowest_rank} took {show_time(row.slowest_stall_s)} of its own, the "
            f"other ranks {show_time(row.others_stall_s or 0.0)}"
        )
    if row.parts_s:
        parts = ", ".join(
            f"{part.replace('_', ' ')} {show_time(seconds, 2)}"
            for part, seconds in row.parts_s.items()
        )
        words += f" ({parts})"
    return words
