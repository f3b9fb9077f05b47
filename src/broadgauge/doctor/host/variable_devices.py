"""Do variables name interfaces, adapters, GIDs and plugins that are on this machine?

Source: NVIDIA/nccl, src/misc/utils.cc (parseStringList, matchIfList: prefixes, `=` exact, `^`
all but these, `:port`), src/misc/socket.cc, src/transport/net_ib; user guide, NCCL_IB_HCA.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.doctor.host.asking import active_ports, few_names
from broadgauge.doctor.host.variable_evidence import Variables
from broadgauge.messages.hardware import GidFacts, HardwareFacts, HcaFacts, HcaPort
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.wording.near_words import did_you_mean

_INTERNAL = ("ib", "socket")


@dataclass(frozen=True, slots=True)
class NameFilter:
    """`=mlx5_0:1,mlx5_1`."""

    entries: tuple[tuple[str, int | None], ...]
    """Names and ports; None: any port."""
    is_exact: bool
    is_excluded: bool

    def takes(self, name: str, port: int | None = None) -> bool:
        """Would NCCL use it?"""
        is_named = any(
            (name == wanted if self.is_exact else name.startswith(wanted))
            and (number is None or port is None or number == port)
            for wanted, number in self.entries
        )
        return is_named != self.is_excluded


def read_filter(text: str) -> NameFilter:
    """Of NCCL_SOCKET_IFNAME and NCCL_IB_HCA. An entry of a later rail or plane is cut off."""
    is_excluded = text.startswith("^")
    rest = text.removeprefix("^")
    entries: list[tuple[str, int | None]] = []
    for part in rest.removeprefix("=").split(","):
        name, _, more = part.strip().partition(":")
        number = more.partition(":")[0]
        if name:
            is_number = number.isascii() and number.isdecimal() and len(number) < 6
            entries.append((name, int(number) if is_number else None))
    return NameFilter(tuple(entries), is_exact=rest.startswith("="), is_excluded=is_excluded)


def device_findings(asked: Variables) -> Iterator[Finding]:
    """Nothing without the machine's facts."""
    if asked.facts is None:
        return
    yield from _interfaces(asked, asked.facts)
    yield from _adapters(asked, asked.facts)
    yield from _gid_index(asked, asked.facts)
    yield from _network(asked, asked.facts)


def _interfaces(asked: Variables, facts: HardwareFacts) -> Iterator[Finding]:
    text = asked.values.get("NCCL_SOCKET_IFNAME")
    if not text or not facts.nics:
        return
    named = read_filter(text)
    taken = [nic for nic in facts.nics if named.takes(nic.name)]
    if named.takes("lo"):
        yield from _loopback(asked, is_excluded=named.is_excluded)
        return
    if any(nic.state != "down" and nic.addresses for nic in taken):
        return
    names = [nic.name for nic in facts.nics]
    near = did_you_mean(named.entries[0][0], names) if named.entries else None
    yield Finding(
        rule="host-variable-interface",
        severity=Severity.ERROR,
        symptom=(
            f"NCCL_SOCKET_IFNAME takes {few_names([nic.name for nic in taken])}, which is down or "
            "has no address"
            if taken
            else "NCCL_SOCKET_IFNAME takes no interface of this machine"
        ),
        evidence=(asked.evidence("NCCL_SOCKET_IFNAME"), f"/sys/class/net: {few_names(names, 8)}"),
        cause="NCCL refuses to start without an interface; names differ from node to node",
        fix=near or "one that every node has, or `^` with those to leave out",
        confidence=Confidence.CERTAIN if not taken else Confidence.LIKELY,
    )


def _loopback(asked: Variables, *, is_excluded: bool) -> Iterator[Finding]:
    """A list of exceptions without `lo` takes the loopback, and the first one found is used.

    Source: NVIDIA/nccl, src/misc/socket.cc, ncclFindInterfaces: `lo` is left out only where the
    variable is not set.
    """
    yield Finding(
        rule="host-variable-loopback",
        severity=Severity.WARNING if is_excluded else Severity.INFO,
        symptom="NCCL_SOCKET_IFNAME takes the loopback: other nodes can't reach it",
        evidence=(asked.evidence("NCCL_SOCKET_IFNAME"),),
        cause=(
            "it is left out by itself only where the variable is not set"
            if is_excluded
            else "enough for one node"
        ),
        fix=f"{asked.values['NCCL_SOCKET_IFNAME']},lo"
        if is_excluded
        else "the network's interface",
        confidence=Confidence.CERTAIN,
    )


def _chosen_ports(asked: Variables, facts: HardwareFacts) -> list[tuple[HcaFacts, HcaPort]]:
    """Active ports that NCCL_IB_HCA takes."""
    text = asked.values.get("NCCL_IB_HCA")
    named = read_filter(text) if text else None
    ports = list(active_ports(facts))
    return [each for each in ports if named is None or named.takes(each[0].name, each[1].number)]


def _adapters(asked: Variables, facts: HardwareFacts) -> Iterator[Finding]:
    if not asked.values.get("NCCL_IB_HCA") or _chosen_ports(asked, facts):
        return
    named = read_filter(asked.values["NCCL_IB_HCA"])
    names = [hca.name for hca in facts.hcas]
    taken = [name for name in names if named.takes(name)]
    near = did_you_mean(named.entries[0][0], names) if named.entries and names else None
    yield Finding(
        rule="host-variable-adapter",
        severity=Severity.WARNING if names else Severity.INFO,
        symptom=(
            f"no port that NCCL_IB_HCA takes is active ({few_names(taken)}): NCCL will use sockets"
            if taken
            else "NCCL_IB_HCA takes no RDMA adapter of this machine: NCCL will use sockets"
        ),
        evidence=(
            asked.evidence("NCCL_IB_HCA"),
            f"/sys/class/infiniband: {few_names(names, 8) or 'no adapter'}",
        ),
        cause="names of adapters differ between machines, and a port number may be wrong",
        fix=near or "the names in /sys/class/infiniband, with `=` in front to be exact",
        confidence=Confidence.CERTAIN,
    )


def _gid_index(asked: Variables, facts: HardwareFacts) -> Iterator[Finding]:
    index = asked.number("NCCL_IB_GID_INDEX")
    if index is None or index < 0:
        return
    for hca, port in _chosen_ports(asked, facts):
        if port.link_layer != "Ethernet" or port.gids is None:
            continue
        gid = next((each for each in port.gids if each.index == index), None)
        problem = _problem_of(gid)
        if problem is None:
            continue
        better = port.roce_v2_ipv4_index
        yield Finding(
            rule="host-variable-gid",
            severity=Severity.ERROR if gid is None else Severity.WARNING,
            symptom=f"GID {index} of {hca.name}:{port.number} {problem}",
            evidence=(
                asked.evidence("NCCL_IB_GID_INDEX"),
                f"/sys/class/infiniband/{hca.name}/ports/{port.number}/gids/{index}: "
                f"{gid.gid if gid else 'empty'} ({(gid.kind if gid else None) or 'no type'})",
            ),
            cause="a fixed index: the table differs between machines, ports and pods",
            fix=(
                "leave it unset: NCCL 2.21 and newer pick one; else "
                + (f"{better} here" if better is not None else "an address for the interface")
            ),
            confidence=Confidence.CERTAIN,
        )


def _problem_of(gid: GidFacts | None) -> str | None:
    if gid is None:
        return "is empty: connections will fail"
    if gid.kind is not None and gid.kind != "RoCE v2":
        return "is RoCE v1: it passes no router, and no peer that uses RoCE v2"
    return None


def _network(asked: Variables, facts: HardwareFacts) -> Iterator[Finding]:
    """A network or plugin that must be used, and is not here."""
    network = asked.values.get("NCCL_NET", "")
    if network.lower() == "ib" and not facts.hcas:
        yield Finding(
            rule="host-variable-network",
            severity=Severity.ERROR,
            symptom="NCCL_NET=IB, and this machine has no RDMA adapter: NCCL refuses to start",
            evidence=(asked.evidence("NCCL_NET"), "/sys/class/infiniband: no adapter"),
            cause="NCCL_NET forbids to fall back to sockets",
            fix="give the pod or VM its adapters; or unset NCCL_NET, and sockets are used",
            confidence=Confidence.CERTAIN,
        )
    plugin = asked.values.get("NCCL_NET_PLUGIN", "")
    names = {each.name for each in facts.network_plugins}
    if not plugin or plugin.lower() == "none" or "/" in plugin or plugin.lower() in _INTERNAL:
        return
    if {plugin, f"libnccl-net-{plugin}.so"} & names:
        return
    yield Finding(
        rule="host-variable-plugin",
        severity=Severity.WARNING,
        symptom=f"the network plugin {plugin!r} was not found: NCCL will use its own networks",
        evidence=(
            asked.evidence("NCCL_NET_PLUGIN"),
            f"plugins found: {few_names(sorted(names)) or 'none'}",
        ),
        cause=f"neither {plugin} nor libnccl-net-{plugin}.so is in LD_LIBRARY_PATH or the system's",
        fix="put its folder on LD_LIBRARY_PATH, of every rank",
        confidence=Confidence.LIKELY,
    )
