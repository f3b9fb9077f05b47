"""What did the checkpoints of a training cost, and which of them are whole?

    step | gap: save, wait for the slowest rank | step (beside the save, if in the background) | …

A gap is in no step's time. It is what training stands still for a save: each rank's own stall, and
its wait for the rank whose stall was longest, which would else be met in the next step's first
collective and be taken for the network's or the data's. Steps that begin while a save is written in
the background are slower for it: they are told apart from steps beside no save (*quiet* ones), and
where there are quiet ones, these alone are `step_time_s`.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.merging.collectives import slowest_rank_s
from broadgauge.merging.metrics import MeasurementBuilder
from broadgauge.merging.rank_blocks import RankBlocks
from broadgauge.messages.checkpoints import CheckpointBegun, CheckpointSaved
from broadgauge.messages.rank import StepsBlock
from broadgauge.specs.checkpoint_rows import MOST_CHECKPOINT_ROWS, CheckpointRow

SameSteps = tuple[StepsBlock, ...]
NO_SAVE = "no checkpoint was saved within the measured steps"
NOT_KNOWN_DURABLE = "no checkpoint is known to have become durable"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsAndSaves:
    """The communicating steps of a training in their order, and the gaps after them."""

    seconds: tuple[float, ...]
    """Slowest rank."""
    gaps_s: tuple[float, ...]
    """Slowest rank; 0 where nothing was saved."""
    are_beside: tuple[bool, ...]
    """Did it begin while any rank wrote a checkpoint in the background?"""

    @property
    def quiet_s(self) -> tuple[float, ...]:
        """The steps beside no save."""
        pairs = zip(self.seconds, self.are_beside, strict=True)
        return tuple(seconds for seconds, is_beside in pairs if not is_beside)

    @property
    def step_s(self) -> float | None:
        """The mean step beside no save, of all steps where there is none such; None: no steps."""
        seconds = self.quiet_s or self.seconds
        return statistics.fmean(seconds) if seconds else None

    @property
    def has_saves(self) -> bool:
        return any(self.gaps_s)

    def beside(self, first: int) -> tuple[float, ...]:
        """The steps from number `first` on until the first quiet one, or the next save."""
        found = []
        for number in range(first, len(self.seconds)):
            if not self.are_beside[number] or (number > first and self.gaps_s[number - 1]):
                break
            found.append(self.seconds[number])
        return tuple(found)


def steps_and_saves(on: Sequence[SameSteps]) -> StepsAndSaves:
    """Blocks of ranks that know of no saves have none."""
    seconds: list[float] = []
    gaps_s: list[float] = []
    are_beside: list[bool] = []
    for same in on:
        seconds += slowest_rank_s([block.seconds for block in same])
        none = (0.0,) * len(same[0].seconds)
        gaps_s += slowest_rank_s([block.save_gaps_s or none for block in same])
        flags = zip(*(block.are_beside_saves or none for block in same), strict=True)
        are_beside += [any(of_ranks) for of_ranks in flags]
    return StepsAndSaves(seconds=tuple(seconds), gaps_s=tuple(gaps_s), are_beside=tuple(are_beside))


def put_checkpoints(
    found: MeasurementBuilder, ranks: Sequence[RankBlocks], steps: StepsAndSaves
) -> None:
    """The rows, the metrics and the series of a training that saves."""
    found.checkpoints = checkpoint_rows(ranks, steps)
    stalls_s = [gap_s for gap_s in steps.gaps_s if gap_s]
    durable_s = [row.durable_s for row in found.checkpoints if row.durable_s is not None]
    found.put("checkpoint_stall_s", _mean(stalls_s), NO_SAVE)
    found.put("time_to_durable_s", _mean(durable_s), NOT_KNOWN_DURABLE)
    steps_s, gaps_s = sum(steps.seconds), sum(stalls_s)
    share = gaps_s / (steps_s + gaps_s) if stalls_s else None
    found.put("checkpoint_share_ratio", share, NO_SAVE)
    with_saves_s = (steps_s + gaps_s) / len(steps.seconds) if stalls_s else None
    found.put("step_time_with_saves_s", with_saves_s, NO_SAVE)
    found.series["checkpoint_stall_s"] = steps.gaps_s if stalls_s else ()


def checkpoint_rows(ranks: Sequence[RankBlocks], steps: StepsAndSaves) -> tuple[CheckpointRow, ...]:
    """One a save that any rank began, in their order; the newest, where there are many."""
    begun = {said.after_step: said.name for rank in ranks for said in rank.of(CheckpointBegun)}
    newest = sorted(begun)[-MOST_CHECKPOINT_ROWS:]
    return tuple(_row(after, begun[after], ranks, steps) for after in newest)


def _row(after: int, name: str, ranks: Sequence[RankBlocks], steps: StepsAndSaves) -> CheckpointRow:
    said = {
        rank.rank: saved
        for rank in ranks
        for saved in rank.of(CheckpointSaved)
        if saved.after_step == after
    }
    away = [rank.rank for rank in ranks if rank.rank not in said]
    slowest = max(said, key=lambda rank: said[rank].stall_s, default=None)
    others = [saved.stall_s for rank, saved in said.items() if rank != slowest]
    durable = [saved.durable_s for saved in said.values()]
    known = [each for each in durable if each is not None]
    beside = steps.beside(after)
    of_slowest = None if slowest is None else said[slowest]
    return CheckpointRow(
        after_step=after,
        name=name,
        stall_s=steps.gaps_s[after - 1] if len(steps.gaps_s) >= after else None,
        slowest_rank=slowest if others else None,
        slowest_stall_s=None if of_slowest is None else of_slowest.stall_s,
        others_stall_s=statistics.median(others) if others else None,
        in_flight_s=0.0 if of_slowest is None else of_slowest.in_flight_s,
        durable_s=max(known) if known and len(known) == len(ranks) else None,
        durable_evidence=_evidence(list(said.values())),
        num_bytes=sum(saved.num_bytes for saved in said.values()),
        parts_s={} if of_slowest is None else of_slowest.parts_s,
        steps_beside=len(beside),
        slowed_s=_slowed_s(beside, steps.quiet_s),
        problem=_problem(away),
    )


def _slowed_s(beside: Sequence[float], quiet: Sequence[float]) -> float | None:
    if not beside or not quiet:
        return None
    return sum(beside) - len(beside) * statistics.fmean(quiet)


def _evidence(said: Sequence[CheckpointSaved]) -> str:
    """Of the last to be durable; of one of which it is not known, why."""
    unknown = [each for each in said if each.durable_s is None]
    if unknown:
        return unknown[0].durable_evidence
    last = max(said, key=lambda each: each.durable_s or 0.0, default=None)
    return "" if last is None else last.durable_evidence


def _problem(away: Sequence[int]) -> str:
    if not away:
        return ""
    ranks = f"rank{'' if len(away) == 1 else 's'} {', '.join(map(str, away))}"
    return f"{ranks} had not finished it when the trial ended"


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None
