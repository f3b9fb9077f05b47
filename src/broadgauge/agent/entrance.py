"""Which of the programs in the zip file is meant? `python broadgauge.zip PROGRAM [ARGUMENT …]`."""

import sys
from collections.abc import Sequence

PROGRAMS = ("agent", "facts", "leader", "relay")


def main(arguments: Sequence[str]) -> int:
    """Run one of them; gives its exit status."""
    program, *rest = arguments or ("",)
    sys.argv = [program, *rest]
    if program == "agent":
        from broadgauge.agent.on_host import main as run
    elif program == "facts":
        from broadgauge.agent.facts import main as run
    elif program == "leader":
        from broadgauge.leader.main import main as run
    elif program == "relay":
        from broadgauge.leader.relay import main as run
    else:
        known = ", ".join(PROGRAMS)
        sys.stderr.write(f"`{program}` is no program of this file: {known}\n")
        return 2
    return run()
