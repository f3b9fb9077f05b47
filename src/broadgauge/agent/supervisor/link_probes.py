"""How does the supervisor measure a network that was there before, with another host's? In a child
beside its loop, as it measures emulated links.
"""

from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from broadgauge.agent import found_link
from broadgauge.agent.sides import SideFailed
from broadgauge.agent.supervisor.side_process import SideAnswer, SideProcess
from broadgauge.messages.found_links import CallOnLink, LinkProbed, ListenOnLink, ListensOnLink

_CONGESTION_CONTROL = Path("/proc/sys/net/ipv4/tcp_congestion_control")

Probing = Generator[SideProcess, SideAnswer, LinkProbed]
"""Yields the child at work, is sent its answer, and returns what is to be said."""


def probe_link(
    order: ListenOnLink | CallOnLink,
    interfaces: Sequence[str],
    say: Callable[[ListensOnLink], None],
) -> Probing:
    """This side's part of a measurement; where it listens is said as soon as it does."""
    if isinstance(order, CallOnLink):
        return _call(order, interfaces)
    return _listen(order, interfaces, say)


def _listen(
    order: ListenOnLink, interfaces: Sequence[str], say: Callable[[ListensOnLink], None]
) -> Probing:
    number = order.probe.number
    try:
        servers = found_link.listen(interfaces)
    except SideFailed as failure:
        return LinkProbed(number=number, trouble=str(failure))
    try:
        child = SideProcess.start(
            lambda: found_link.serve(servers, order.probe), found_link.PROBE_LIMIT_S
        )
        say(ListensOnLink(number=number, endpoints=tuple(map(found_link.endpoint, servers))))
    finally:
        found_link.close_all(servers)  # the child has its own
    answer = yield child
    return LinkProbed(
        number=number,
        trouble=answer.trouble,
        stream_gbps=answer.figures.get("stream_gbps"),
    )


def _call(order: CallOnLink, interfaces: Sequence[str]) -> Probing:
    answer = yield SideProcess.start(
        lambda: found_link.call(interfaces, order.endpoints, order.probe),
        found_link.PROBE_LIMIT_S,
    )
    return LinkProbed(
        number=order.probe.number,
        trouble=answer.trouble,
        round_trip_s=answer.figures.get("round_trip_s"),
        congestion_control=_CONGESTION_CONTROL.read_text().strip(),
    )
