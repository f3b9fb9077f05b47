"""Did the other processes of a job never come, by what Lightning counts?"""

from collections.abc import Iterator

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import LogReading
from broadgauge.specs.records.record import Confidence, Finding, Severity

MEMBER_RULE = "lightning-member"
LIMIT_RULE = "slurm-time-limit"


def members_missing(reading: LogReading) -> Iterator[Conclusion]:
    """Fewer than it waits for, until Slurm's time limit. A log of one rank has one of them, too:
    so only where NCCL never began."""
    seen = [each for each in reading.seen if each.rule.id == MEMBER_RULE]
    limits = [each for each in reading.seen if each.rule.id == LIMIT_RULE]
    came = {each.fields["member"] for each in seen}
    totals = {int(each.fields["members"]) for each in seen}
    if not limits or reading.num_nccl_lines or len(totals) != 1 or len(came) >= max(totals):
        return
    (total,) = totals
    yield Conclusion(
        place=seen[0].lines[0][0],
        finding=Finding(
            rule="members-missing",
            severity=Severity.ERROR,
            symptom=f"only {len(came)} of {total} processes came, until Slurm's time limit",
            evidence=quoted([*seen[0].lines[:1], *limits[0].lines[:1]]),
            cause=(
                "Lightning waits for the others, which were never started: the batch script calls "
                "python without srun, or with fewer tasks than devices times nodes"
            ),
            fix=(
                "`srun python train.py` in the batch script, with --ntasks-per-node equal to "
                "devices and --nodes equal to num_nodes"
            ),
            confidence=Confidence.LIKELY,
        ),
        explains=frozenset({LIMIT_RULE}),
        is_cause=True,
    )
