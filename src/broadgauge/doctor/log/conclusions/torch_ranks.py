"""Which ranks did the others wait for, by what torch wrote when a collective's time was up?"""

from collections.abc import Iterator

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.speakers import rank_words
from broadgauge.specs.record import Confidence, Finding, Severity

_DUMP = "torch-dump-signal"


def rank_behind(reading: LogReading) -> Iterator[Conclusion]:
    """Ranks that issued fewer collectives than others, of those that said how many.

    Source: pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp: each rank that
    gets the signal writes its last enqueued and its last completed work of the default group.
    """
    by_issued: dict[int, set[int]] = {}
    lines = []
    for seen in sorted(reading.seen, key=lambda each: int(each.fields.get("enqueued", 0))):
        if seen.rule.id == _DUMP and seen.ranks:
            by_issued.setdefault(int(seen.fields["enqueued"]), set()).update(seen.ranks)
            lines.extend(seen.lines[:1])
    if len(by_issued) < 2:
        return
    fewest, *_, most = sorted(by_issued)
    behind, others = by_issued[fewest], set().union(*by_issued.values()) - by_issued[fewest]
    verb = "has" if len(behind) == 1 else "have"
    yield Conclusion(
        place=lines[0][0],
        finding=Finding(
            rule="rank-behind",
            severity=Severity.ERROR,
            symptom=(
                f"{rank_words(behind)} {verb} issued {fewest} collectives, {rank_words(others)} up "
                f"to {most}: these wait"
            ),
            evidence=quoted(lines),
            cause=(
                "what is behind hangs or is slow in something else (data, storage, a lock, a long "
                "step of its own), or took another way through the script"
            ),
            fix=(
                f"read the last lines of {rank_words(behind)} and `py-spy dump` its process; "
                "compare its batches and branches with those of the others"
            ),
            confidence=Confidence.LIKELY,
        ),
        explains=frozenset({_DUMP}),
    )
