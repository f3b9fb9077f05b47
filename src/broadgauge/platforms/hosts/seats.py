"""Where are the nodes of a case, on hosts?"""

from collections.abc import Sequence

from broadgauge.agent.facts import HostFacts
from broadgauge.platforms.hosts.interfaces import interfaces_of
from broadgauge.platforms.led.orders import Seat, Seats
from broadgauge.specs.case import Case


def seats_on(case: Case, facts: Sequence[HostFacts], first_host: str) -> Seats:
    """The first hosts. Raises LaunchError where one has no interface of the case's network.

    `first_host`: as ssh takes it, where the way by which ssh came is unknown.
    """
    return Seats(
        seats=tuple(
            Seat(num_cores=host.cores, interfaces=interfaces_of(case, host))
            for host in facts[: case.nodes]
        ),
        master_address=facts[0].reached_at or first_host,
    )
