"""What do the counters of RDMA adapters say of a trial that was to go over them?

NCCL's log says which network it chose, and meant_transport.py holds that against what was asked.
Counters say what crossed the ports. They decide where the log does not say it; where the two
contradict each other neither is believed. A shared adapter counts other pods, too: nothing on it
still proves that nothing was sent, and much on it proves nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from broadgauge.messages.adapters_used import AdaptersUsed, CountedFor, PortUse
from broadgauge.platforms.meant_transport import FELL_BACK
from broadgauge.specs.case import Case
from broadgauge.specs.networks.transports import BY_VERBS
from broadgauge.specs.records.nccl import NcclUse
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.wording.amounts import show_count, show_size

COUNTERS = "adapter-counters"


def findings_of_adapters(
    case: Case, told: Sequence[AdaptersUsed], nccl: NcclUse | None
) -> tuple[Finding, ...]:
    """An error is a failed trial's: `transport_error`."""
    face = None if case.link is None else case.link.face
    if case.backend != "nccl" or face is None or face.transport not in BY_VERBS:
        return ()
    return (*_idle(case, told, says_rdma=_says_rdma(nccl)), *_notes(case, told))


def _says_rdma(nccl: NcclUse | None) -> bool:
    """Does NCCL's log name RDMA as its way?"""
    if nccl is None:
        return False
    has_way = nccl.way("GDRDMA") is not None or nccl.way("network") is not None
    return has_way or (nccl.network or "").casefold().startswith("ib")


def _idle(case: Case, told: Sequence[AdaptersUsed], *, says_rdma: bool) -> Iterator[Finding]:
    """Of machines all of whose adapters were counted, and carried nothing."""
    idle = [each for each in told if each.ports and all(_is_idle(port) for port in each.ports)]
    if not idle:
        return
    names = ", ".join(port.adapter for port in idle[0].ports)
    where = _nodes([each.node for each in idle])
    wanted = f"network {case.network_name} is meant as RDMA, and nothing left {where} by {names}"
    if says_rdma:
        yield Finding(
            rule=COUNTERS,
            severity=Severity.WARNING,
            symptom=f"{wanted}, though NCCL's log says that it sent by RDMA",
            evidence=tuple(_counts(told)),
            cause="these counters may not be the pod's, as of some virtual functions",
            fix="look at the adapter's counters on the node while a trial runs",
            confidence=Confidence.LIKELY,
        )
        return
    yield Finding(
        rule=FELL_BACK,
        severity=Severity.ERROR,
        symptom=wanted,
        evidence=tuple(_counts(told)),
        cause="its bytes went another way, and NCCL's log does not say which",
        fix="`broadgauge doctor --host` in the pods says what RDMA lacks; to measure TCP say "
        "`transport: tcp`",
        confidence=Confidence.CERTAIN,
    )


def _is_idle(port: PortUse) -> bool:
    return port.tx_bytes == 0 and not port.writes_count


def _notes(case: Case, told: Sequence[AdaptersUsed]) -> Iterator[Finding]:
    """What can't be told, and what may cost speed."""
    texts: dict[str, list[int]] = defaultdict(list)
    for each in told:
        for text in _words(each.ports):
            texts[text].append(each.node)
    if texts:
        said = [f"{_nodes(nodes)}: {text}" for text, nodes in texts.items()]
        yield Finding(
            rule=COUNTERS,
            severity=Severity.INFO,
            symptom=f"network {case.network_name}, {said[0]}",
            evidence=(*said[1:], *_counts(told)),
        )


def _words(ports: Sequence[PortUse]) -> Iterator[str]:
    shared = [port.adapter for port in ports if port.counted_for is CountedFor.NODE]
    if shared:
        yield f"the counters of {', '.join(shared)} are the node's: other pods' bytes are in them"
    uncounted = [port.adapter for port in ports if port.counted_for is CountedFor.NOBODY]
    if uncounted:
        yield f"{', '.join(uncounted)} has no counters here: NCCL's log alone says its way"
    idle = [port.adapter for port in ports if _is_idle(port)]
    if idle and len(idle) < len(ports):
        yield f"nothing left by {', '.join(idle)}: NCCL used the network's other adapters alone"
    for port in ports:
        if port.lost_packets_count:
            lost = show_count(port.lost_packets_count)
            yield f"{port.adapter} counted {lost} packets that were lost or out of order"


def _counts(told: Sequence[AdaptersUsed]) -> Iterator[str]:
    for each in told:
        for port in each.ports:
            sent = "unknown" if port.tx_bytes is None else show_size(port.tx_bytes)
            yield f"node {each.node}, {port.adapter}: {sent} sent, counted for {port.counted_for}"


def _nodes(numbers: Sequence[int]) -> str:
    return f"node{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
