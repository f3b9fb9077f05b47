"""What would others predict for the same rows? The rule of thumb, and step times from a file."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from broadgauge.predict.case import TrainingCase
from broadgauge.predict.facts.columns import TENSOR_CORE_FALLBACKS
from broadgauge.predict.prediction import Interval
from broadgauge.predict.scoring.scoring import Scored, Scores
from broadgauge.predict.scoring.validation import ScoreSheet, score_sheet
from broadgauge.specs.errors import InputError

RULE_MFU_RATIO = 0.45
MFU_RULE = "6N + 12LHS at 45 % MFU"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSheet:
    """A peer and we, on the rows for which the peer has an answer."""

    name: str
    peer: ScoreSheet
    ours: ScoreSheet


def rule_s(case: TrainingCase) -> float:
    """Model FLOPs of a step over 45 % of the GPUs' peak: no network, no memory, no launches.

    Source: Chowdhery et al. 2022 (PaLM), appendix B, for 6N + 12LHS a token.
    """
    model = case.model
    flops_per_token = 6 * model.active_params + 12 * model.layers * model.hidden * case.seq_len
    gpu = case.gpu_entry
    peaks = (gpu.peak_flops(each) for each in TENSOR_CORE_FALLBACKS[case.precision])
    peak = next(each for each in peaks if each is not None)
    tokens = case.global_batch * case.seq_len
    return flops_per_token * tokens / (RULE_MFU_RATIO * peak * case.gpus)


def against_rule(scored: Sequence[Scored]) -> PeerSheet:
    """The rule of thumb on these rows."""
    return _sheet(MFU_RULE, scored, {each.row.line: rule_s(each.row.case) for each in scored})


def against_times(name: str, scored: Sequence[Scored], times_s: Mapping[str, float]) -> PeerSheet:
    """A peer's step times by row id, on the rows that it has."""
    by_line = {each.row.line: times_s[each.row.id] for each in scored if each.row.id in times_s}
    return _sheet(name, [each for each in scored if each.row.line in by_line], by_line)


def read_times(data: bytes, filename: str) -> dict[str, float]:
    """Step times in a CSV with the columns `id` and `step_time_s`. Raises InputError."""
    try:
        reader = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        times = {}
        for row in reader:
            if row.get("step_time_s"):
                times[row["id"]] = float(row["step_time_s"])
    except (UnicodeDecodeError, csv.Error, KeyError, ValueError) as error:
        raise InputError(
            f"{filename} is no table of step times: {error}",
            hint="a CSV with the columns `id` and `step_time_s`",
        ) from None
    if not times:
        raise InputError(
            f"{filename} has no step times", hint="a CSV with the columns `id` and `step_time_s`"
        )
    return times


def _sheet(name: str, scored: Sequence[Scored], times_s: Mapping[int, float]) -> PeerSheet:
    """Neither the rule nor the peer states an interval: nothing is said of its coverage."""
    theirs = [
        Scored(row=each.row, step_time_s=Interval(value=time_s, low=time_s, high=time_s))
        for each in scored
        for time_s in (times_s[each.row.line],)
    ]
    return PeerSheet(name=name, peer=_uncovered(score_sheet(theirs)), ours=score_sheet(scored))


def _uncovered(sheet: ScoreSheet) -> ScoreSheet:
    def without(each: Scores) -> Scores:
        return replace(each, interval_coverage=None)

    return ScoreSheet(
        overall=without(sheet.overall),
        mean_over_sources=without(sheet.mean_over_sources),
        by_source={source: without(each) for source, each in sheet.by_source.items()},
    )
