"""What do the counters of RDMA adapters, as agents in pods read them, say of a trial?"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from broadgauge.messages.rdma_use import AdaptersUsed
from broadgauge.platforms.meant_transport import FELL_BACK, NOT_SOCKETS
from broadgauge.specs.case import Case
from broadgauge.specs.record import Confidence, Finding, Severity
from broadgauge.wording.amounts import show_size

COUNTERS = "adapter-counters"


def findings_of_adapters(case: Case, told: Sequence[AdaptersUsed]) -> tuple[Finding, ...]:
    """What contradicts the way that was asked for is an error: `transport_error` makes it the
    trial's. What can't be known is told for what it is."""
    return (*_problems(case, told), *_notes(told))


def _problems(case: Case, told: Sequence[AdaptersUsed]) -> Iterator[Finding]:
    found = None if case.link is None else case.link.found
    is_sockets = found is not None and found.is_sockets
    texts = _by_nodes([(each.node, text) for each in told for text in each.use.problems])
    if texts:
        yield Finding(
            rule=NOT_SOCKETS if is_sockets else FELL_BACK,
            severity=Severity.ERROR,
            symptom=f"network {case.network_name}: {texts[0]}",
            evidence=(*texts[1:], *_counts(told)),
            confidence=Confidence.CERTAIN,
        )


def _notes(told: Sequence[AdaptersUsed]) -> Iterator[Finding]:
    texts = _by_nodes([(each.node, text) for each in told for text in each.use.notes])
    if texts:
        yield Finding(
            rule=COUNTERS,
            severity=Severity.INFO,
            symptom=texts[0],
            evidence=(*texts[1:], *_counts(told)),
        )


def _by_nodes(rows: Sequence[tuple[int, str]]) -> list[str]:
    """Equal ones of several nodes once."""
    nodes: dict[str, list[int]] = defaultdict(list)
    for node, text in rows:
        nodes[text].append(node)
    return [
        f"node{'s' if len(own) > 1 else ''} {', '.join(map(str, own))}: {text}"
        for text, own in nodes.items()
    ]


def _counts(told: Sequence[AdaptersUsed]) -> Iterator[str]:
    for each in told:
        for use in each.use.adapters:
            sent = "unknown" if use.tx_bytes is None else show_size(use.tx_bytes)
            yield f"node {each.node}, {use.adapter}: {sent} sent, counted for {use.counted_for}"
