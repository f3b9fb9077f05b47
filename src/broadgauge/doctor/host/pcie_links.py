"""Have PCIe links come up slower or narrower than both devices can?"""

from collections.abc import Iterator

from broadgauge.doctor.host.asking import gpus_here
from broadgauge.messages.hardware import HardwareFacts, PciDevice
from broadgauge.specs.records.record import Confidence, Finding, Severity


def _devices(facts: HardwareFacts) -> dict[str, tuple[str, PciDevice, bool]]:
    """By address: its name, and whether it is a GPU. A virtual function has no link of its own."""
    found: dict[str, tuple[str, PciDevice, bool]] = {}
    for nic in facts.nics:
        if nic.pci is not None and nic.kind == "physical":
            found[nic.pci.address] = (nic.name, nic.pci, False)
    for hca in facts.hcas:
        if hca.pci is not None and not hca.is_virtual_function:
            found[hca.pci.address] = (hca.name, hca.pci, False)
    for gpu in gpus_here(facts):
        found[gpu.pci.address] = (gpu.model or "GPU", gpu.pci, True)
    return found


def narrow_links(facts: HardwareFacts) -> Iterator[Finding]:
    """Fewer lanes than the device has."""
    for name, pci, _ in _devices(facts).values():
        width, most = pci.link_width, pci.max_link_width
        if width is None or most is None or width >= most:
            continue
        yield Finding(
            rule="host-pcie-width",
            severity=_severity(facts),
            symptom=f"{name} ({pci.address}) uses {width} of its {most} PCIe lanes",
            evidence=(
                f"/sys/bus/pci/devices/{pci.address}/current_link_width: {width}, of {most}",
            ),
            cause="a slot with fewer lanes, a riser, a card that does not sit well",
            fix="another slot, or reseat it; `lspci -vv` (LnkSta) shows both ends",
            confidence=Confidence.LIKELY,
        )


def slow_links(facts: HardwareFacts) -> Iterator[Finding]:
    """A lower generation than the device has. An idle GPU lowers it to save power."""
    for name, pci, is_gpu in _devices(facts).values():
        speed, most = pci.link_mt_per_s, pci.max_link_mt_per_s
        if speed is None or most is None or speed >= most:
            continue
        yield Finding(
            rule="host-pcie-speed",
            severity=Severity.INFO if is_gpu else _severity(facts),
            symptom=f"{name} ({pci.address}) runs PCIe at {speed / 1000:g} of {most / 1000:g} GT/s",
            evidence=(
                f"/sys/bus/pci/devices/{pci.address}/current_link_speed: {speed / 1000:g} GT/s",
            ),
            cause=(
                "an idle GPU lowers it to save power; else the slot is of an older generation"
                if is_gpu
                else "a slot or riser of an older generation, or signal errors"
            ),
            fix=(
                "look again while it works: `nvidia-smi -q -d PCIE`"
                if is_gpu
                else "`lspci -vv` (LnkCap, LnkSta) of it and of the bridge above"
            ),
            confidence=Confidence.POSSIBLE if is_gpu else Confidence.LIKELY,
        )


def _severity(facts: HardwareFacts) -> Severity:
    """A VM's view of a link is its hypervisor's invention more often than not."""
    return Severity.WARNING if facts.machine.hypervisor is None else Severity.INFO


RULES = (narrow_links, slow_links)
