"""What would each rank be given on hosts? For `--dry-run`: nothing is started."""

import shlex
from collections.abc import Iterator, Sequence

from broadgauge.platforms.hosts.interfaces import interfaces_of
from broadgauge.platforms.hosts.orders import Allocated, facts_for, places_on, rank_variables
from broadgauge.specs.hosts import Host
from broadgauge.specs.launching import LaunchRequest


def shown_commands(
    request: LaunchRequest, hosts: Sequence[Host], allocated: Allocated
) -> tuple[str, ...]:
    """Environment and program of each rank, as a shell on its host would take them."""
    return tuple(_lines(request, hosts, allocated))


def _lines(request: LaunchRequest, hosts: Sequence[Host], allocated: Allocated) -> Iterator[str]:
    case = request.cases[0]
    program = "command" if case.workload.is_under_torchrun else "worker"
    for node in range(case.nodes):
        host, facts = hosts[node], facts_for(case, allocated.facts[node], interfaces_of)
        for place in places_on(case, node, allocated):
            variables = rank_variables(case, place, facts)
            words = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
            secrets = [
                f'{name}="${name}"'
                for name, value in case.environment.items()
                if not isinstance(value, str)
            ]
            command = f"{shlex.quote(host.python)} broadgauge.zip {program}"
            yield f"{host.ssh}: " + " ".join([*words, *secrets, command])
