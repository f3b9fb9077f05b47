"""Which ranks did the others wait for, by what torch wrote when a collective's time was up?"""

import re
from collections.abc import Iterator

from broadgauge.doctor.log.conclusions.collectives import OF_TIMEOUT, TIMEOUT
from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.speakers import rank_words
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.wording.amounts import show_time

_DUMP = "torch-dump-signal"
PREPARING = "data-preparing"
_BAR = re.compile(
    r"((?:Generating|Map|Filter|Tokeniz|Running tokenizer|Saving the dataset|Packing|Grouping|"
    r"Concatenating|Preprocess|Preparing|Flattening|Casting)[\w ()=/-]{0,60}?)\s*:"
)
"""What progress bars of preparing call themselves. Source: huggingface/datasets src/datasets
(arrow_dataset.py, builder.py), huggingface/trl and transformers, their `desc=`."""


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


def waits_for_preparing(reading: LogReading) -> Iterator[Conclusion]:
    """Ranks that waited in a barrier until their time was up, while data was being prepared."""
    bars = [seen for seen in reading.seen if seen.rule.id == PREPARING]
    waiting = [seen for seen in reading.seen if seen.rule.id == TIMEOUT]
    barriers = [seen for seen in waiting if seen.fields.get("elements") == "1"]
    named = [match[1] for seen in bars for _, text in seen.lines if (match := _BAR.search(text))]
    if not named or not barriers or len(barriers) < len(waiting):
        return
    lines = [*bars[0].lines[-1:], *barriers[0].lines[:1]]
    limit_ms = int(barriers[0].fields["limit_ms"])
    ranks = {rank for seen in barriers for rank in seen.ranks}
    who = rank_words(ranks) if ranks else "ranks"
    yield Conclusion(
        place=lines[-1][0],
        finding=Finding(
            rule="waits-for-preparing",
            severity=Severity.ERROR,
            symptom=(
                f"{who} waited {show_time(limit_ms / 1000)} in a barrier while another rank "
                f"prepared data (`{named[-1]}` ran), and gave up"
            ),
            evidence=quoted(lines),
            cause=(
                "one rank prepares the data set for all, which takes longer than the process "
                "group's time limit; the network is not to blame"
            ),
            fix=(
                "prepare (tokenise, generate) the data set once before the job, so that ranks find "
                "it in the cache; or raise `timeout=` of init_process_group (ddp_timeout in "
                "transformers, InitProcessGroupKwargs in accelerate)"
            ),
            confidence=Confidence.LIKELY,
        ),
        explains=OF_TIMEOUT,
    )
