"""What should a reader know of this machine? Each rule looks at one concern."""

from collections.abc import Callable, Iterator

from broadgauge.doctor.host import (
    adapters,
    gpu_direct,
    limits,
    nics,
    pcie_links,
    port_errors,
    software,
)
from broadgauge.doctor.host.variables import variable_findings
from broadgauge.messages.hardware import HardwareFacts
from broadgauge.specs.records.record import Finding

HostRule = Callable[[HardwareFacts], Iterator[Finding]]
RULES: tuple[HostRule, ...] = (
    *adapters.RULES,
    *gpu_direct.RULES,
    *nics.RULES,
    *pcie_links.RULES,
    *limits.RULES,
    *port_errors.RULES,
    *software.RULES,
)


def host_findings(facts: HardwareFacts) -> tuple[Finding, ...]:
    """The worst first."""
    variables = facts.effective_variables()
    found = [
        *(finding for rule in RULES for finding in rule(facts)),
        *variable_findings(variables, version=facts.nccl_version, facts=facts),
    ]
    return tuple(sorted(found, key=lambda finding: finding.severity.rank))
