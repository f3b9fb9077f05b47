"""Does a PCIe link fail, by what the kernel logs of its ports, and what of a GPU that was lost?"""

from collections.abc import Iterator, Sequence

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.conclusions.limits import MANY_CORRECTED
from broadgauge.doctor.log.facts import LogReading, Seen
from broadgauge.doctor.log.speakers import named
from broadgauge.specs.records.record import Confidence, Finding, Severity

CORRECTED_RULE = "pcie-corrected"
LOST_RULE = "xid-79"


def pcie_links_fail(reading: LogReading) -> Iterator[Conclusion]:
    """A GPU that fell off the bus after its link was corrected again and again; or only that."""
    corrected = [seen for seen in reading.seen if seen.rule.id == CORRECTED_RULE]
    lost = [seen for seen in reading.seen if seen.rule.id == LOST_RULE]
    count = sum(seen.count for seen in corrected)
    if not corrected or (not lost and count < MANY_CORRECTED):
        return
    ports = named(seen.fields["port"] for seen in corrected)
    yield _fell_off(lost, corrected, ports) if lost else _many(corrected, ports, count)


def _fell_off(lost: Sequence[Seen], corrected: Sequence[Seen], ports: str) -> Conclusion:
    count = sum(seen.count for seen in corrected)
    times = "once" if count == 1 else f"{count} times"
    return Conclusion(
        place=lost[0].lines[0][0],
        finding=Finding(
            rule=LOST_RULE,
            severity=Severity.ERROR,
            symptom=(
                f"GPU {named(seen.fields['gpu'] for seen in lost)} has fallen off the bus "
                f"(Xid 79); the kernel corrected errors of PCIe port {ports} {times}"
            ),
            evidence=quoted([*corrected[0].lines[:1], *lost[0].lines[:1]]),
            cause=(
                "the PCIe link fails: slot, riser, cable, power or the card; corrected errors "
                "again and again are its sign, where that port leads to this GPU"
            ),
            fix=(
                "`lspci -tv` shows what is behind the port; drain the node, power-cycle it, "
                "reseat or replace the card or riser"
            ),
            confidence=Confidence.LIKELY,
        ),
        explains=frozenset({LOST_RULE}),
        is_cause=True,
    )


def _many(corrected: Sequence[Seen], ports: str, count: int) -> Conclusion:
    return Conclusion(
        place=corrected[0].lines[0][0],
        finding=Finding(
            rule="pcie-corrected-often",
            severity=Severity.WARNING,
            symptom=f"the kernel corrected errors of PCIe port {ports} {count} times",
            evidence=quoted(corrected[0].lines[:2]),
            cause="a link that begins to fail: slot, riser, cable or card; each error costs time",
            fix=(
                "`lspci -tv` shows what is behind the port, `lspci -vv` its speed and width; "
                "reseat the card; watch whether the count grows"
            ),
            confidence=Confidence.POSSIBLE,
        ),
    )
