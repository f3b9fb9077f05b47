"""What is this machine made of, as `broadgauge doctor --host` shows it?"""

from rich.console import Console

from broadgauge.agent.hardware.gpus import can_dma_buf
from broadgauge.doctor.host.asking import nearest
from broadgauge.messages.hardware import HardwareFacts, HcaFacts, HcaPort, NicFacts
from broadgauge.report.doctor.terminal import print_part
from broadgauge.report.terminal.tables import heading, print_table, sentence
from broadgauge.report.words.printable import printable
from broadgauge.specs.units import show_rate, show_size

_UNKNOWN = "unknown"
_MOST_NICS = 32


def print_host(facts: HardwareFacts, console: Console) -> None:
    """Interfaces, adapters, GPUs and limits; what can't be read is said to be unknown."""
    heading("This machine", console)
    for title, words in _lines(facts):
        print_part(title, printable(words), console)
    _print_nics(facts, console)
    _print_hcas(facts, console)
    _print_gpus(facts, console)


def _lines(facts: HardwareFacts) -> list[tuple[str, str]]:
    machine, limits = facts.machine, facts.limits
    place = machine.container or (f"a VM of {machine.hypervisor}" if machine.hypervisor else None)
    system = ", ".join(filter(None, (machine.distribution, f"Linux {machine.kernel}", place)))
    cpus = str(limits.cpus_allowed or _UNKNOWN)
    if limits.cpu_limit_millicores is not None:
        cpus += f", limited to {limits.cpu_limit_millicores / 1000:g}"
    most, shm = limits.memory_limit_bytes, limits.shm_size_bytes
    nccl = [f"{each.version or _UNKNOWN} ({each.path})" for each in facts.nccl]
    plugins = [each.path for each in facts.network_plugins]
    return [
        ("host", f"{machine.hostname or _UNKNOWN}: {system}"),
        ("cores", f"{cpus}; memory {'no limit' if most is None else show_size(most)}"),
        ("memlock", _memlock(facts)),
        ("/dev/shm", _UNKNOWN if shm is None else show_size(shm)),
        ("NCCL", ", ".join(nccl) or "not found"),
        ("libraries", _libraries(facts)),
        ("plugins", ", ".join(plugins) or "none"),
        ("GPUDirect", _gpudirect(facts)),
    ]


def _memlock(facts: HardwareFacts) -> str:
    limits = facts.limits
    if not limits.is_memlock_known:
        return _UNKNOWN
    soft = limits.memlock_soft_bytes
    return "unlimited" if soft is None else show_size(soft)


def _libraries(facts: HardwareFacts) -> str:
    found = [name for name, path in facts.libraries.items() if path is not None]
    missing = [name for name, path in facts.libraries.items() if path is None]
    words = [*found, *(f"no {name}" for name in missing)]
    return ", ".join(words)


def _gpudirect(facts: HardwareFacts) -> str:
    driver = facts.gpu_driver
    if driver is None:
        return "no NVIDIA driver here"
    dma_buf = {True: "DMA-BUF can be had", False: "no DMA-BUF", None: "DMA-BUF unknown"}
    peers = driver.peer_memory or "nvidia_peermem not loaded"
    return f"driver {driver.version or _UNKNOWN}; {peers}; {dma_buf[can_dma_buf(facts)]}"


def _print_nics(facts: HardwareFacts, console: Console) -> None:
    if not facts.nics:
        print_part("interfaces", "none but the loopback", console)
        return
    heading("Interfaces", console)
    head = ("interface", "kind", "state", "speed", "MTU", "driver", "address", "errors")
    used = [nic for nic in facts.nics if nic.state != "down" or nic.pci is not None]
    shown = used[:_MOST_NICS]
    print_table(head, [_nic_row(nic) for nic in shown], console)
    if len(facts.nics) > len(shown):
        sentence(f"and {len(facts.nics) - len(shown)} more, virtual and down, or too many", console)


def _nic_row(nic: NicFacts) -> tuple[str, ...]:
    return (
        nic.name,
        nic.kind,
        nic.state or _UNKNOWN,
        _UNKNOWN if nic.speed_mbps is None else show_rate(nic.speed_mbps / 1000),
        _UNKNOWN if nic.mtu_bytes is None else str(nic.mtu_bytes),
        nic.driver or _UNKNOWN,
        next(iter(nic.addresses), "–"),
        str(sum(nic.counters.values())),
    )


def _print_hcas(facts: HardwareFacts, console: Console) -> None:
    if not facts.hcas:
        print_part("adapters", "no InfiniBand or RoCE adapter is visible", console)
        return
    heading("Adapters for RDMA", console)
    head = ("port", "state", "rate", "link", "RoCE v2 IPv4 GID", "VF", "interface")
    rows = [_port_row(hca, port) for hca in facts.hcas for port in hca.ports]
    print_table(head, rows, console)


def _port_row(hca: HcaFacts, port: HcaPort) -> tuple[str, ...]:
    index = port.roce_v2_ipv4_index
    gid = "–" if port.link_layer == "InfiniBand" else "none" if index is None else str(index)
    return (
        f"{hca.name}:{port.number}",
        port.state or _UNKNOWN,
        _UNKNOWN if port.rate_gbps is None else show_rate(port.rate_gbps),
        port.link_layer or _UNKNOWN,
        _UNKNOWN if port.gids is None else gid,
        {True: "yes", False: "no", None: _UNKNOWN}[hca.is_virtual_function],
        ", ".join(hca.interfaces) or "–",
    )


def _print_gpus(facts: HardwareFacts, console: Console) -> None:
    if not facts.gpus:
        return
    heading("GPUs", console)
    rows = []
    for gpu in facts.gpus:
        near = nearest(facts, gpu)
        link = gpu.pci
        width = "unknown" if link.link_width is None else f"x{link.link_width}"
        rate = "" if link.link_mt_per_s is None else f" at {link.link_mt_per_s / 1000:g} GT/s"
        rows.append(
            (
                gpu.model or link.address,
                link.address,
                f"{width}{rate}",
                _UNKNOWN if link.numa_node is None else str(link.numa_node),
                "–" if near is None else f"{near.device} ({near.distance})",
            )
        )
    print_table(("GPU", "PCI", "link", "NUMA node", "nearest adapter"), rows, console)
