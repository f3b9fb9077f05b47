"""Did a port of an adapter go down under the job, once or again and again?"""

import re
from collections.abc import Iterator, Sequence

from broadgauge.doctor.log.clocks import span_words
from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import LogReading, Seen
from broadgauge.doctor.log.speakers import named
from broadgauge.specs.records.record import Confidence, Finding, Severity

EVENT_RULE = "ib-port-event"
COMPLETION_RULE = "ib-completion-named"
_DOWN = "port error"
"""Source: rdma-core libibverbs/enum_strs.c, ibv_event_type_str."""
_LOST = ("5", "12", "13")
"""Status of transfers that end as a port is down: flushed, retries exceeded. Source: rdma-core
libibverbs/verbs.h, enum ibv_wc_status."""
_ADAPTER = re.compile(r"\bhca (?P<name>\S+)")


def ports_went_down(reading: LogReading) -> Iterator[Conclusion]:
    """One finding for all ports that did; a transfer that failed on one of them follows from it."""
    events = [seen for seen in reading.seen if seen.rule.id == EVENT_RULE]
    down = [seen for seen in events if seen.fields["event"] == _DOWN]
    if not down:
        return
    ports = {seen.fields["device"].rstrip(":") for seen in down}
    lost = _lost_on(reading, ports, down)
    times = max(map(_times, down))
    changes = sorted(line for seen in events for line in seen.lines)
    yield Conclusion(
        place=changes[0][0],
        finding=Finding(
            rule="port-went-down",
            severity=Severity.ERROR if lost else Severity.WARNING,
            symptom=_symptom(ports, times, events, has_lost=bool(lost)),
            evidence=quoted([*changes[:2], *(seen.lines[0] for seen in lost)]),
            cause=(
                "a cable, a transceiver or the switch's port: a link that comes and goes"
                if times > 1
                else "a cable, a transceiver, the switch's port, or somebody who switched it off"
            ),
            fix=(
                f"look at {named(ports)}: the switch's log of that port, `mlxlink -d DEVICE -e -c` "
                "and the port's error counters; reseat or swap cable and transceiver; "
                "NCCL_IB_TIMEOUT=22 and NCCL_IB_RETRY_CNT=7 only ride out short outages"
            ),
            confidence=Confidence.LIKELY,
        ),
        explains=frozenset({EVENT_RULE, *(seen.rule.id for seen in lost)}),
        is_cause=True,
    )


def _times(down: Seen) -> int:
    """Each process that uses the adapter says so of each event."""
    return max(1, round(down.count / max(1, len(down.speakers))))


def _symptom(ports: set[str], times: int, events: Sequence[Seen], *, has_lost: bool) -> str:
    word = "port" if len(ports) == 1 else "ports"
    often = f" {times} times" if times > 1 else ""
    came_up = " and came up again" if any(s.fields["event"] != _DOWN for s in events) else ""
    firsts = [seen.first_clock for seen in events if seen.first_clock is not None]
    lasts = [seen.last_clock for seen in events if seen.last_clock is not None]
    span = span_words(min(firsts, default=None), max(lasts, default=None))
    when = f" ({span})" if span else ""
    after = ", and transfers over it failed (status 12)" if has_lost else ""
    return f"{word} {named(ports)} went down{often}{came_up}{when}{after}"


def _lost_on(reading: LogReading, ports: set[str], down: Sequence[Seen]) -> list[Seen]:
    """Transfers that failed on these adapters; none where one failed before, or on another."""
    failed = [seen for seen in reading.seen if seen.rule.id == COMPLETION_RULE]
    if any(_is_before(seen, down) for seen in failed):
        return []
    adapters = {port.partition(":")[0] for port in ports}
    for seen in failed:
        told = {match["name"] for _, text in seen.lines if (match := _ADAPTER.search(text))}
        if seen.fields["status"] not in _LOST or not told <= adapters:
            return []
    return failed


def _is_before(failed: Seen, down: Sequence[Seen]) -> bool:
    """By the time of day; where lines have none nothing contradicts."""
    firsts = [seen.first_clock for seen in down if seen.first_clock is not None]
    return bool(firsts) and failed.first_clock is not None and failed.first_clock < min(firsts)
