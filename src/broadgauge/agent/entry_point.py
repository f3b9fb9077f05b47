"""Which of the programs in the zip file is meant? `python broadgauge.zip PROGRAM [ARGUMENT …]`."""

import importlib
import sys
from collections.abc import Sequence

PROGRAMS = {
    "addresses": "broadgauge.agent.pod.addresses",
    "agent": "broadgauge.agent.on_host",
    "command": "broadgauge.probes.command",
    "facts": "broadgauge.agent.facts",
    "leader": "broadgauge.leader.main",
    "measure": "broadgauge.probes.without_agent",
    "networks": "broadgauge.agent.pod.networks",
    "pod": "broadgauge.agent.pod.main",
    "prepare": "broadgauge.agent.volume.prepare",
    "relay": "broadgauge.leader.relay",
    "supervise": "broadgauge.agent.supervisor.__main__",
    "wait": "broadgauge.agent.volume.wait",
    "worker": "broadgauge.probes.worker",
}
"""By name, so that each is imported alone: a worker needs torch, and nothing else does."""


def main(arguments: Sequence[str]) -> int:
    """Run one of them; gives its exit status."""
    program, *rest = arguments or ("",)
    if program not in PROGRAMS:
        known = ", ".join(PROGRAMS)
        sys.stderr.write(f"`{program}` is no program of this file: {known}\n")
        return 2
    sys.argv = [program, *rest]
    status: int = importlib.import_module(PROGRAMS[program]).main()
    return status
