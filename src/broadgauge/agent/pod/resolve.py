"""Which interfaces and adapters of this pod are a network's, and what must NCCL be told?

Pure: the facts are read by `facts.py`. What a network asks for and the pod does not have is a
problem, and nothing is started; nothing is guessed. What the user has set is kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from broadgauge.agent.pod.adapters import (
    LINK_LAYERS,
    VARIABLE,
    NicAdapter,
    adapters_here,
    find_adapter,
    named_adapters,
    opened_adapters,
)
from broadgauge.agent.pod.facts import PodFacts
from broadgauge.agent.pod.found_nics import (
    SOCKETS_BY,
    FoundNic,
    NoSuchNicError,
    find_nics,
    ipv4_of,
    pod_network_nic,
)
from broadgauge.agent.pod.gids import gid_problems
from broadgauge.agent.pod.nccl_variables import (
    GpuPair,
    Reason,
    gpudirect_reasons,
    nearest_to_gpus,
    pair_gpus,
    sockets_only,
    verbs_reasons,
    with_given,
)
from broadgauge.agent.pod.rdma_plugins import (
    BY_PLUGIN,
    plugin_notes,
    plugin_problems,
    plugin_reasons,
    unused_notes,
)
from broadgauge.agent.pod.rdma_ready import rdma_notes, rdma_problems, usable_of
from broadgauge.messages.asked_network import AskedNetwork

BY_VERBS = ("roce", "infiniband")
"""RDMA that NCCL has itself, as its network `IB`; for BY_PLUGIN's it needs a plugin, and all other
transports are sockets."""


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
    """That the ranks are given, beside what the user set."""
    reasons: tuple[Reason, ...] = ()
    problems: tuple[str, ...] = ()
    """Why nothing may be started."""
    notes: tuple[str, ...] = ()
    """What is worth knowing and stops nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """By what NCCL is to send, beside sockets."""

    adapters: Sequence[NicAdapter] = ()
    reasons: Sequence[Reason] = ()
    problems: Sequence[str] = ()
    notes: Sequence[str] = ()


def resolve(network: AskedNetwork, facts: PodFacts) -> ResolvedNetwork:
    """What this network is in this pod."""
    try:
        nics = find_nics(network, facts)
    except NoSuchNicError as error:
        return ResolvedNetwork(name=network.name, problems=(str(error),))
    return _resolved(network, nics, facts, _way(network, nics, facts))


def _way(network: AskedNetwork, nics: Sequence[FoundNic], facts: PodFacts) -> _Way:
    if not network.has_nccl:
        return _Way()
    if network.transport in BY_VERBS:
        return _by_verbs(network, nics, facts)
    if network.transport in BY_PLUGIN:
        return _by_plugin(network, facts)
    if network.transport is not None:
        why = f"`{network.transport}` is asked for: TCP sockets, whatever else the pod has"
        return _Way(reasons=sockets_only(why))
    return _as_nccl_chooses(network, nics, facts)


def _by_verbs(network: AskedNetwork, nics: Sequence[FoundNic], facts: PodFacts) -> _Way:
    notes: list[str] = []
    if network.is_pod_network:
        adapters, missing, notes = _of_device_plugin(network, facts)
    else:
        found = [(one, find_adapter(one, facts)) for one in nics]
        adapters = [adapter for _, adapter in found if adapter is not None]
        missing = [_no_adapter(network, one, facts) for one, adapter in found if adapter is None]
    named = facts.given.get(VARIABLE)
    if named is not None:
        all_named, missing = named_adapters(named, adapters, facts), []
        adapters, notes = usable_of(named, all_named, facts)
        if not adapters:
            missing = [f"{VARIABLE}={named} names no adapter of this pod; {adapters_here(facts)}"]
    if not adapters and not missing:
        asked = f"`{network.transport}` is asked for, and no interface was found whose it is"
        missing = [f"{asked}; {adapters_here(facts)}"]
    blocked = rdma_problems(network, adapters, facts) if adapters else ()
    gids = gid_problems(adapters, facts.hardware.nccl_version, facts.given)
    why = "RDMA is asked for: where NCCL can't use it the launch fails instead of taking sockets"
    reasons = [Reason(variable="NCCL_NET", value="IB", why=why), *verbs_reasons(adapters, facts)]
    reasons += gpudirect_reasons(network)
    notes += _against_rdma(network, facts)
    return _Way(
        adapters=adapters,
        reasons=reasons,
        problems=[*missing, *blocked, *gids],
        notes=[*notes, *rdma_notes(facts)],
    )


def _against_rdma(network: AskedNetwork, facts: PodFacts) -> Iterator[str]:
    """What the user set by which NCCL can't do as was asked; it is kept all the same."""
    for name, rdma in (("NCCL_NET", ("IB",)), ("NCCL_IB_DISABLE", ("0",))):
        given = facts.given.get(name)
        if given is not None and given not in rdma:
            yield f"{name}={given} is kept, though `{network.transport}` is asked for"


def _of_device_plugin(
    network: AskedNetwork, facts: PodFacts
) -> tuple[list[NicAdapter], list[str], list[str]]:
    """Adapters without an interface, problems, notes."""
    layer = LINK_LAYERS[network.transport or ""]
    there = opened_adapters(layer, facts)
    taken = nearest_to_gpus(there, max(1, network.num_nics), facts)
    names = ", ".join(adapter.name for adapter in taken) or "none"
    problems = []
    if len(taken) < network.num_nics:
        problems.append(
            f"`{network.transport}` is asked for, by {network.num_nics} adapters, and this "
            f"container was given {len(taken)} active ports of {layer}: {names}; "
            f"{adapters_here(facts)}"
        )
    left = [adapter.name for adapter in there if adapter not in taken]
    more = f"as many ports as NICs are asked for are used; left out: {', '.join(left)}"
    return taken, problems, [more] if left else []


def _by_plugin(network: AskedNetwork, facts: PodFacts) -> _Way:
    """What the plugin calls its devices is its own matter: NCCL's log says what it used."""
    return _Way(
        reasons=[*plugin_reasons(network, facts), *gpudirect_reasons(network)],
        problems=tuple(plugin_problems(network, facts)),
        notes=tuple(plugin_notes(network, facts)),
    )


def _as_nccl_chooses(network: AskedNetwork, nics: Sequence[FoundNic], facts: PodFacts) -> _Way:
    """But of this network: adapters of others are in the same pod."""
    if facts.given.get(VARIABLE) is not None:
        return _Way(reasons=[Reason(variable=VARIABLE, value=None, why="")])
    found = (find_adapter(one, facts) for one in nics)
    adapters = [adapter for adapter in found if adapter is not None]
    blocked = list(gid_problems(adapters, facts.hardware.nccl_version, facts.given))
    if adapters:
        blocked += rdma_problems(network, adapters, facts)
    if adapters and not blocked:
        few = f"{len(adapters)} of {len(nics)} NICs have an RDMA adapter: NCCL takes those alone"
        notes = [few] if len(adapters) < len(nics) else []
        notes += rdma_notes(facts)
        return _Way(adapters=adapters, reasons=verbs_reasons(adapters, facts), notes=notes)
    others = [hca.name for hca in facts.hardware.hcas]
    if not others:
        return _Way()
    why = (
        f"no adapter of this network can be used here, and NCCL would take another's: "
        f"{', '.join(others[:4])}"
    )
    notes = [f"not by RDMA: {problem}" for problem in blocked]
    notes += unused_notes(facts)
    return _Way(reasons=sockets_only(why), notes=notes)


def _resolved(
    network: AskedNetwork, nics: Sequence[FoundNic], facts: PodFacts, way: _Way
) -> ResolvedNetwork:
    """With the interfaces for sockets, which NCCL needs in any case to find the others."""
    sockets, why, problems = _socket_nics(network, nics, facts, has_rdma=bool(way.adapters))
    names = tuple(one.nic.name for one in sockets if one.nic is not None)
    listed = ",".join(names)
    reasons = [*way.reasons]
    if names:
        reasons[:0] = [
            Reason(variable=SOCKETS_BY, value=f"={listed}", why=why),
            Reason(variable="GLOO_SOCKET_IFNAME", value=listed, why=why),
        ]
    prefixes = tuple(f"{each.upper()}_" for each in network.libraries)
    told = tuple(with_given((r for r in reasons if r.variable.startswith(prefixes)), facts))
    return ResolvedNetwork(
        name=network.name,
        interfaces=names,
        addresses=tuple(_first_address(one) for one in sockets),
        adapters=tuple(adapter.name for adapter in way.adapters),
        pairs=tuple(pair_gpus(way.adapters, facts)),
        variables={
            each.variable: each.value
            for each in told
            if each.value is not None and not each.is_given
        },
        reasons=told,
        problems=(*problems, *way.problems),
        notes=(*_subnet_notes(nics), *way.notes),
    )


def _socket_nics(
    network: AskedNetwork, nics: Sequence[FoundNic], facts: PodFacts, *, has_rdma: bool
) -> tuple[list[FoundNic], str, list[str]]:
    """Which, why, and what is wrong with them."""
    interfaces = (one.nic for one in nics)
    problems = [
        f"{nic.name} is down" for nic in interfaces if nic is not None and nic.state == "down"
    ]
    with_address = [one for one in nics if one.nic is not None and one.nic.addresses]
    if len(with_address) == len(nics):
        return with_address, "; ".join(one.words for one in with_address), problems
    if not has_rdma and network.transport not in BY_VERBS:
        lacking = [p.nic.name if p.nic else p.how for p in nics if p not in with_address]
        return with_address, "", [*problems, f"no address on {', '.join(lacking)}"]
    try:
        own = pod_network_nic(facts)
    except NoSuchNicError as error:
        return [], "", [*problems, str(error)]
    why = f"the network's NICs have no IP address; {own.words}, by which ranks find each other"
    return [own], why, problems


def _first_address(one: FoundNic) -> str:
    assert one.nic is not None
    if not one.nic.addresses:
        return ""
    return (*ipv4_of(one.nic), *one.nic.addresses)[0].partition("/")[0]


def _no_adapter(network: AskedNetwork, one: FoundNic, facts: PodFacts) -> str:
    own = ", ".join(one.ipv4) or "no IPv4 address"
    which = f"{one.how} ({own})" if one.nic is None else f"{one.nic.name} ({own}; {one.how})"
    return (
        f"`{network.transport}` is asked for, and no RDMA adapter belongs to {which}; "
        f"{adapters_here(facts)}"
    )


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
