"""Which of the programs in the zip file is meant? `python broadgauge.zip PROGRAM [ARGUMENT …]`."""

import importlib.util
import sys
from collections.abc import Sequence

PROGRAMS = {
    "addresses": "broadgauge.agent.pod.addresses",
    "agent": "broadgauge.agent.on_host",
    "command": "broadgauge.probes.command",
    "facts": "broadgauge.agent.facts",
    "kept-events": "broadgauge.leader.kept_events",
    "leader": "broadgauge.leader.main",
    "measure": "broadgauge.probes.without_agent",
    "networks": "broadgauge.agent.pod.networks",
    "pod": "broadgauge.agent.pod.main",
    "pod-agent": "broadgauge.agent.in_pod",
    "pod-leader": "broadgauge.leader.in_pod",
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
    if program not in PROGRAMS or not _is_here(PROGRAMS[program]):
        known = ", ".join(name for name, module in PROGRAMS.items() if _is_here(module))
        said = f"`{program}` is no program of this file" if program else "which program?"
        sys.stderr.write(f"{said}: {known}\n")
        return 2
    sys.argv = [program, *rest]
    status: int = importlib.import_module(PROGRAMS[program]).main()
    return status


def _is_here(module: str) -> bool:
    """A file has the programs that its pods or hosts need, and no others."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # nor the folder that it would be in
        return False
