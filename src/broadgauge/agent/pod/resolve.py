"""Which interfaces and adapters of this pod are a network's, and what must NCCL be told?

Pure: the facts are read by `facts.py`. What a network asks for and the pod does not have is a
problem, and the launch is refused; nothing is guessed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from broadgauge.agent.pod.adapters import NicAdapter, find_adapter, opened_adapters
from broadgauge.agent.pod.facts import PodFacts
from broadgauge.agent.pod.found_nics import (
    FoundNic,
    NoSuchNicError,
    find_nics,
    ipv4_of,
    pod_network_nic,
)
from broadgauge.agent.pod.nccl_variables import (
    GpuPair,
    Reason,
    gid_problems,
    gpudirect_reasons,
    nearest_to_gpus,
    pair_gpus,
    verbs_reasons,
)
from broadgauge.agent.pod.rdma_ready import rdma_problems
from broadgauge.messages.pod_network import PodNetwork

BY_VERBS = ("roce", "infiniband")
BY_PLUGIN = ("efa", "slingshot", "omnipath", "tcpx")
"""RDMA that NCCL has itself, as its network `IB`, and RDMA for which it needs a plugin. All other
transports are sockets."""
SOCKETS_ONLY = {"NCCL_NET": "Socket", "NCCL_NET_PLUGIN": "none", "NCCL_IB_DISABLE": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedNetwork:
    """What a network is in this pod."""

    name: str
    interfaces: tuple[str, ...] = ()
    """That lead to the other pods, in the order of the attachments."""
    addresses: tuple[str, ...] = ()
    """The first of each of them, without prefix."""
    adapters: tuple[str, ...] = ()
    """RDMA ports that belong to them: `mlx5_0:1`; empty: none, or they are not used."""
    pairs: tuple[GpuPair, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()
    problems: tuple[str, ...] = ()
    """Why the launch must not start."""
    notes: tuple[str, ...] = ()
    """What is worth knowing and stops nothing."""


def resolve(network: PodNetwork, facts: PodFacts) -> ResolvedNetwork:
    """What this network is in this pod."""
    try:
        nics = find_nics(network, facts)
    except NoSuchNicError as error:
        return ResolvedNetwork(name=network.name, problems=(str(error),))
    if network.transport in BY_VERBS:
        return _by_verbs(network, nics, facts)
    if network.transport in BY_PLUGIN:
        return _by_plugin(network, nics, facts)
    if network.transport is not None:
        return _by_sockets(network, nics, facts)
    return _as_nccl_chooses(network, nics, facts)


def adapters_of(network: PodNetwork, facts: PodFacts) -> tuple[str, ...]:
    """RDMA ports of the network's NICs, be they used or not: `mlx5_0:1`. What is meant as TCP must
    not cross them by RDMA. Empty where the network is not in this pod."""
    try:
        found = [find_adapter(one, facts) for one in find_nics(network, facts)]
    except NoSuchNicError:
        return ()
    return tuple(adapter.name for adapter in found if adapter is not None)


def _by_sockets(network: PodNetwork, nics: Sequence[FoundNic], facts: PodFacts) -> ResolvedNetwork:
    why = f"`{network.transport}` is asked for: TCP sockets, whatever else the pod has"
    reasons = [Reason(variable=n, value=v, why=why) for n, v in SOCKETS_ONLY.items()]
    return _resolved(network, nics, facts, reasons=reasons, problems=_too_many_nics(network))


def _by_verbs(network: PodNetwork, nics: Sequence[FoundNic], facts: PodFacts) -> ResolvedNetwork:
    found = [(one, find_adapter(one, facts)) for one in nics]
    adapters = [adapter for _, adapter in found if adapter is not None]
    missing = [_no_adapter(network, one, facts) for one, adapter in found if adapter is None]
    notes: list[str] = []
    if network.is_pod_network and not adapters and network.transport == "infiniband":
        there = opened_adapters("InfiniBand", facts)
        adapters = nearest_to_gpus(there, max(1, network.num_nics), facts)
        notes += _left_out(there, adapters)
        missing = missing if not adapters else _too_few(network, adapters)
    elif network.transport == "roce":
        missing += _too_many_nics(network)
    blocked = rdma_problems(network, adapters, facts) if adapters else ()
    problems = [*missing, *blocked, *gid_problems(adapters, facts)]
    why = "RDMA is asked for: where NCCL can't use it the launch fails instead of taking sockets"
    reasons = [Reason(variable="NCCL_NET", value="IB", why=why), *verbs_reasons(adapters, facts)]
    reasons += gpudirect_reasons(network)
    return _resolved(
        network, nics, facts, adapters=adapters, reasons=reasons, problems=problems, notes=notes
    )


def _by_plugin(network: PodNetwork, nics: Sequence[FoundNic], facts: PodFacts) -> ResolvedNetwork:
    """What the plugin calls its devices is its own matter: NCCL's log says what it used."""
    problems: list[str] = []
    if network.transport == "efa" and not any(h.driver == "efa" for h in facts.hardware.hcas):
        problems.append("EFA is asked for, and no adapter in this pod has the driver efa")
    notes = []
    if not facts.hardware.network_plugins:
        notes.append("no libnccl-net*.so was found on the library path: NCCL may fall back")
    return _resolved(
        network,
        nics,
        facts,
        reasons=gpudirect_reasons(network),
        problems=problems,
        notes=notes,
    )


def _as_nccl_chooses(
    network: PodNetwork, nics: Sequence[FoundNic], facts: PodFacts
) -> ResolvedNetwork:
    """But of this network: adapters of others are in the same pod."""
    many = _too_many_nics(network)
    found = (find_adapter(one, facts) for one in nics)
    adapters = [adapter for adapter in found if adapter is not None]
    blocked = list(gid_problems(adapters, facts))
    if adapters:
        blocked += rdma_problems(network, adapters, facts)
    if adapters and not blocked:
        reasons = verbs_reasons(adapters, facts)
        few = f"{len(adapters)} of {len(nics)} NICs have an RDMA adapter: NCCL takes those alone"
        notes = [few] if len(adapters) < len(nics) else []
        return _resolved(
            network, nics, facts, adapters=adapters, reasons=reasons, problems=many, notes=notes
        )
    others = [hca.name for hca in facts.hardware.hcas]
    if not others:
        return _resolved(network, nics, facts, problems=many)
    why = (
        f"no adapter of this network can be used here, and NCCL would take another's: "
        f"{', '.join(others[:4])}"
    )
    reasons = [Reason(variable=n, value=v, why=why) for n, v in SOCKETS_ONLY.items()]
    notes = [f"not by RDMA: {problem}" for problem in blocked]
    return _resolved(network, nics, facts, reasons=reasons, problems=many, notes=notes)


def _resolved(
    network: PodNetwork,
    nics: Sequence[FoundNic],
    facts: PodFacts,
    *,
    adapters: Sequence[NicAdapter] = (),
    reasons: Sequence[Reason] = (),
    problems: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> ResolvedNetwork:
    """With the interfaces for sockets, which NCCL needs in any case to find the others."""
    sockets, why, more = _socket_nics(nics, facts, has_rdma=bool(adapters))
    names = tuple(one.nic.name for one in sockets if one.nic is not None)
    listed = ",".join(names)
    all_reasons = [*reasons]
    if names:
        all_reasons[:0] = [
            Reason(variable="NCCL_SOCKET_IFNAME", value=f"={listed}", why=why),
            Reason(variable="GLOO_SOCKET_IFNAME", value=listed, why="the same, for Gloo"),
        ]
    return ResolvedNetwork(
        name=network.name,
        interfaces=names,
        addresses=tuple(_first_address(one) for one in sockets),
        adapters=tuple(adapter.name for adapter in adapters),
        pairs=tuple(pair_gpus(adapters, facts)),
        variables={each.variable: each.value for each in all_reasons if each.value is not None},
        reasons=tuple(all_reasons),
        problems=(*more, *problems),
        notes=(*_subnet_notes(nics), *notes),
    )


def _socket_nics(
    nics: Sequence[FoundNic], facts: PodFacts, *, has_rdma: bool
) -> tuple[list[FoundNic], str, list[str]]:
    """Which, why, and what is wrong with them."""
    interfaces = (one.nic for one in nics)
    problems = [
        f"{nic.name} is down" for nic in interfaces if nic is not None and nic.state == "down"
    ]
    with_address = [one for one in nics if one.nic is not None and one.nic.addresses]
    if len(with_address) == len(nics):
        return with_address, "; ".join(_named(one) for one in with_address), problems
    if not has_rdma:
        lacking = [p.nic.name if p.nic else p.how for p in nics if p not in with_address]
        return with_address, "", [*problems, f"no address on {', '.join(lacking)}"]
    try:
        own = pod_network_nic(facts)
    except NoSuchNicError as error:
        return [], "", [*problems, str(error)]
    return [own], f"the adapters have no IP address; {_named(own)}, to find the others", problems


def _named(one: FoundNic) -> str:
    return one.how if one.nic is None else f"{one.nic.name}: {one.how}"


def _first_address(one: FoundNic) -> str:
    assert one.nic is not None
    return (*ipv4_of(one.nic), *one.nic.addresses)[0].partition("/")[0]


def _no_adapter(network: PodNetwork, one: FoundNic, facts: PodFacts) -> str:
    here = ", ".join(hca.name for hca in facts.hardware.hcas)
    seen = f"adapters here: {here}" if here else "no RDMA adapter is in this pod"
    return (
        f"`{network.transport}` is asked for, and no RDMA adapter belongs to {_named(one)}; {seen}"
    )


def _too_many_nics(network: PodNetwork) -> list[str]:
    """The pod network has one, unless subnets tell several apart."""
    if network.attachments or network.subnets or network.num_nics <= 1:
        return []
    return [
        f"{network.num_nics} NICs are asked for, and the pod network has one: name attachments or "
        "subnets"
    ]


def _too_few(network: PodNetwork, adapters: Sequence[NicAdapter]) -> list[str]:
    if len(adapters) >= network.num_nics:
        return []
    names = ", ".join(adapter.name for adapter in adapters)
    return [
        f"{network.num_nics} NICs are asked for, and this container was given {len(adapters)} "
        f"active ports: {names}"
    ]


def _left_out(there: Sequence[NicAdapter], taken: Sequence[NicAdapter]) -> list[str]:
    names = [adapter.name for adapter in there if adapter not in taken]
    if not names:
        return []
    return [f"as many ports as NICs are asked for are used; left out: {', '.join(names)}"]


def _subnet_notes(nics: Sequence[FoundNic]) -> Iterator[str]:
    homes: dict[str, list[str]] = {}
    for one in nics:
        for subnet in () if one.nic is None else one.nic.subnets[:1]:
            homes.setdefault(subnet, []).append(one.nic.name if one.nic else "")
    for subnet, names in homes.items():
        if len(names) > 1:
            yield (
                f"{', '.join(names)} are in one subnet, {subnet}: the kernel may send all sockets' "
                "bytes through one of them"
            )
