"""What would each rank be given there? For `--dry-run`: nothing is started."""

import shlex
from collections.abc import Iterator

from broadgauge.platforms.led.orders import Seats, facts_for, places_on, rank_variables
from broadgauge.specs.launching import LaunchRequest


def command_lines(
    request: LaunchRequest, node: int, seats: Seats, where: str, python: str
) -> Iterator[str]:
    """A line for each rank of one node."""
    case = request.cases[0]
    program = "command" if case.workload.is_under_torchrun else "worker"
    facts = facts_for(case, seats.seats[node])
    for place in places_on(case, node, seats):
        variables = rank_variables(case, place, facts)
        words = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
        secrets = [
            f'{name}="${name}"'
            for name, value in case.environment.items()
            if not isinstance(value, str)
        ]
        command = f"{shlex.quote(python)} broadgauge.zip {program}"
        yield f"{where}: " + " ".join([*words, *secrets, command])
