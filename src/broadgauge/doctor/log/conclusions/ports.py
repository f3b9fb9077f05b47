"""Has an RDMA port no link, or small packets, by what its tools and the kernel print?"""

import dataclasses
from collections.abc import Iterator

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import ListedPort, LogReading
from broadgauge.doctor.log.speakers import named
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.wording.listing import listed

_WITHOUT_LINK = ("Polling", "Sleep", "PortConfigurationTraining", "LinkErrorRecovery")
"""Physical states without a link that somebody wants. Source: linux-rdma/rdma-core
libibmad/dump.c, mad_dump_physportstate."""
CABLE_RULE = "nic-module"


def ports_without_link(reading: LogReading) -> Iterator[Conclusion]:
    """Down, or up and without a subnet manager. A port that was disabled is meant to be."""
    down = [each for each in reading.ports if each.physical_state in _WITHOUT_LINK]
    waiting = [each for each in reading.ports if each.state == "Initializing"]
    cable = next((seen for seen in reading.seen if seen.rule.id == CABLE_RULE), None)
    if down:
        cause, confidence = (
            "no cable, a bad one, or the switch's port is off",
            Confidence.POSSIBLE,
        )
        if cable is not None:
            cause = "the kernel reports a cable error: a bad or unsupported cable or transceiver"
            confidence = Confidence.LIKELY
        yield _conclusion(
            down,
            symptom=f"no link on {named(each.name for each in down)}: {_states(down)}",
            cause=cause,
            fix=(
                "reseat or swap the cable or transceiver and look at the switch's port; "
                "`mlxlink -d DEVICE -m` reads the module"
            ),
            confidence=confidence,
            others=() if cable is None else quoted(cable.lines),
            explains=frozenset({CABLE_RULE} if cable is not None else ()),
        )
    if waiting:
        yield _conclusion(
            waiting,
            symptom=f"no subnet manager answers {named(each.name for each in waiting)}: "
            f"{_states(waiting)}",
            cause="the cable has a link, and no subnet manager has configured the port",
            fix="is opensm, or the switch's subnet manager, running? `sminfo`, `ibstat`",
            confidence=Confidence.LIKELY,
        )


def packets_are_small(reading: LogReading) -> Iterator[Conclusion]:
    """RoCE ports that send packets of different sizes, or all smaller ones than they could."""
    roce = [p for p in reading.ports if p.link == "Ethernet" and p.state == "Active"]
    known = [p for p in roce if p.mtu_bytes is not None]
    small = [p for p in known if p.most_mtu_bytes is not None and p.mtu_bytes != p.most_mtu_bytes]
    if not small:
        return
    is_same = len({p.mtu_bytes for p in known}) == 1
    sizes = listed([f"{size:,}" for size in sorted({p.mtu_bytes or 0 for p in known})])
    conclusion = _conclusion(
        small,
        symptom=(
            f"RoCE sends packets of {sizes} bytes over {named(p.name for p in known)}"
            + ("" if is_same else ": not all are of one size")
        ),
        cause=(
            "the RDMA packet follows the interface's MTU: 1500 allows 1,024 bytes, 4200 and more "
            "allow 4,096"
        ),
        fix="the same MTU (9000) on every NIC and switch port; `ping -M do -s 8972` tests the way",
        confidence=Confidence.LIKELY,
    )
    severity = Severity.INFO if is_same else Severity.WARNING
    lines = quoted((p.place, f"{p.name}: active_mtu {p.mtu_bytes}") for p in known)
    finding = conclusion.finding.model_copy(
        update={"rule": "roce-packets-small", "severity": severity, "evidence": lines}
    )
    yield dataclasses.replace(conclusion, finding=finding)


def _states(ports: list[ListedPort]) -> str:
    return ", ".join(dict.fromkeys(f"{each.state}/{each.physical_state}" for each in ports))


def _conclusion(
    ports: list[ListedPort],
    *,
    symptom: str,
    cause: str,
    fix: str,
    confidence: Confidence,
    others: tuple[str, ...] = (),
    explains: frozenset[str] = frozenset(),
) -> Conclusion:
    lines = quoted((p.place, f"{p.name}: {p.state}, {p.physical_state}") for p in ports)
    return Conclusion(
        place=ports[0].place,
        finding=Finding(
            rule="port-without-link",
            severity=Severity.ERROR,
            symptom=symptom,
            evidence=(*lines, *others),
            cause=cause,
            fix=fix,
            confidence=confidence,
        ),
        explains=explains,
    )
