"""What is judged of one case: its verdict, its slow pairs, the path its bytes took?"""

from broadgauge.advise.pairs.slow_pairs_over_launches import judged_pairs
from broadgauge.advise.verdicts.verdict import Verdict
from broadgauge.analysis.model import JudgedCase, JudgedWays, PathTaken
from broadgauge.analysis.nccl_taken import nccl_taken
from broadgauge.results.comparing.compare_cases import headline_metrics
from broadgauge.results.model import CaseSummary


def judged_case(summary: CaseSummary, verdict: Verdict) -> JudgedCase:
    """All of it."""
    return JudgedCase(
        key=summary.case.key,
        label=summary.case.label,
        arm=summary.case.arm,
        verdict=verdict,
        headline={
            name: summary.estimates[name]
            for name in headline_metrics(summary)
            if name in summary.estimates
        },
        ways=_ways(summary),
        path=_path(summary),
        nccl=nccl_taken(summary.records),
    )


def _ways(summary: CaseSummary) -> JudgedWays | None:
    judged = judged_pairs(summary)
    if judged is None:
        return None
    return JudgedWays(
        slow=tuple(sorted(judged.slow)),
        place=judged.matrix.place,
        fast_gbyte_per_s=judged.fast_gbyte_per_s,
        sentence=judged.words,
    )


def _path(summary: CaseSummary) -> PathTaken | None:
    seen = [record.path for record in summary.good if record.path is not None]
    if not seen:
        return None
    asked = summary.case.path
    return PathTaken(
        asked=None if asked is None else asked.path,
        used=tuple(dict.fromkeys(path.used for path in seen)),
        channels=tuple(sorted({p.channels_count for p in seen if p.channels_count is not None})),
        evidence=next((path.evidence[0] for path in reversed(seen) if path.evidence), None),
    )
