"""Which networks of an experiment can be had on this machine?"""

from collections.abc import Sequence

from broadgauge.catalog.profiled import with_profile
from broadgauge.engine.shapes import ResolvedCluster
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.networks.network import AnyNetwork, Network, NodePath
from broadgauge.specs.platforms import PlatformKind

_NO_FACE: dict[PlatformKind, str] = {
    "hosts": "where on each host (`found`)",
    "kubernetes": "what is attached to the pods (`kubernetes`)",
}
_SAY_WHICH: dict[PlatformKind, str] = {
    "hosts": "say where it is: `found: {interface: eth0}` or `found: {subnet: 10.0.0.0/24}`",
    "kubernetes": "say what is attached to the pods: `kubernetes: pod` is the cluster's own",
}


def networks_here(
    experiment: Experiment, cluster: ResolvedCluster
) -> tuple[tuple[AnyNetwork, ...], list[str]]:
    """The networks as they will be built, and what was left out of them.

    Raises InputError where one can't be built here.
    """
    networks: list[AnyNetwork] = []
    notes: list[str] = []
    faceless: list[str] = []
    tcp_alone: list[Network] = []
    for network in experiment.networks:
        if isinstance(network, NodePath):
            if _can_use(network, cluster):
                networks.append(network)
            else:
                notes.append(f"path {network.name} is left out: it is between GPUs, here are CPUs")
        elif cluster.devices.finds_networks:
            if network.has_face_on(cluster.platform):
                there = with_profile(network.as_found_on(cluster.platform))
                if _sends_over_tcp_alone(there, cluster):
                    tcp_alone.append(there)
                else:
                    networks.append(there)
            else:
                faceless.append(network.name)
        elif not network.has_emulated_face:
            notes.append(f"{_here(cluster, network)}: it is another platform's, and not emulated")
        else:
            built, note = _built(experiment, cluster, network.as_emulated())
            networks.append(built)
            notes += [] if note is None else [note]
    notes += _without_rdma(tcp_alone, networks, cluster)
    _refuse_if_none_is_left(experiment, cluster, networks)
    notes += _without_face(faceless, cluster.platform)
    return tuple(networks), notes


def _without_face(names: list[str], platform: PlatformKind) -> list[str]:
    """What is said of those that are no network of this platform."""
    if not names:
        return []
    which = f"network {names[0]} is" if len(names) == 1 else f"networks {', '.join(names)} are"
    what = "it does not say" if len(names) == 1 else "they do not say"
    return [f"{which} left out on {platform}: {what} {_NO_FACE[platform]}"]


def _built(
    experiment: Experiment, cluster: ResolvedCluster, network: Network
) -> tuple[Network, str | None]:
    """The network as it is emulated here, and what was left out of it. Raises InputError."""
    if not cluster.devices.can_shape:
        # No link is built, and of shapes with several nodes none may be left to check by.
        return network, None
    _check_pairs(network, cluster)
    if network.needs_netem and not cluster.devices.can_delay:
        return _without_netem(experiment, network)
    return network, None


def _sends_over_tcp_alone(network: Network, cluster: ResolvedCluster) -> bool:
    """Is it meant as RDMA where nothing but Gloo runs? Beside NCCL, Gloo is left out."""
    has_nccl = "nccl" in cluster.backends
    return network.is_meant_as_rdma and not has_nccl and not cluster.has_one_node_only


def _without_rdma(
    networks: Sequence[Network], others: Sequence[AnyNetwork], cluster: ResolvedCluster
) -> list[str]:
    """What is said of those that would be measured over TCP. Raises InputError where all are."""
    if networks and not any(isinstance(each, Network) for each in others):
        network = networks[0]
        assert network.face is not None
        raise InputError(
            f"networks.{network.name}.{network.face.key}.transport: {network.face.transport} is "
            "RDMA, and the backend here is gloo, which sends over TCP",
            hint="`backend: nccl` on GPUs, or leave `transport` out, or say `transport: tcp`",
        )
    why = "it is meant as RDMA, and the backend here is gloo, which sends over TCP"
    return [f"{_here(cluster, network)}: {why}" for network in networks]


def _here(cluster: ResolvedCluster, network: Network) -> str:
    return f"network {network.name} is left out on {cluster.platform}"


def _refuse_if_none_is_left(
    experiment: Experiment, cluster: ResolvedCluster, networks: list[AnyNetwork]
) -> None:
    """Nodes with no network between them can't be asked for, but where another platform has one.

    Raises InputError.
    """
    if any(isinstance(each, Network) for each in networks) or cluster.has_one_node_only:
        return
    named = [each.name for each in experiment.networks if isinstance(each, Network)]
    if not named or len(experiment.platforms) > 1:
        return
    if cluster.devices.finds_networks:
        trouble = f"the platform {cluster.platform} has its own networks, and is not told which"
        hint = _SAY_WHICH[cluster.platform]
    else:
        trouble = f"it is another platform's, and the platform {cluster.platform} has none there"
        hint = "say beside it how to emulate it (`rate_gbps: …`), or take shapes of one node"
    raise InputError(f"networks.{named[0]}: {trouble}", hint=hint)


def _without_netem(experiment: Experiment, network: Network) -> tuple[Network, str]:
    """The network without delay and loss, where the experiment allows that."""
    if not experiment.best_effort:
        raise InputError(
            f"networks.{network.name}: delay and loss need netem, which this kernel has not",
            hint="`modprobe sch_netem` as root, or `best_effort: true` to leave them out",
        )
    plain: Network = network.model_copy(update={"delay_s": 0.0, "jitter_s": 0.0, "loss_ratio": 0.0})
    left_out = f"network {network.name}: delay and loss are left out, this kernel has no netem"
    return plain, left_out


def _can_use(path: NodePath, cluster: ResolvedCluster) -> bool:
    return cluster.device == "cuda" or path.path == "sockets"


def _check_pairs(network: Network, cluster: ResolvedCluster) -> None:
    most_nodes = max(shape.nodes for shape in cluster.shapes)
    for pair in network.slow_pairs:
        if max(pair.nodes) >= most_nodes:
            raise InputError(
                f"networks.{network.name}.slow_pairs: there is no node {max(pair.nodes)}: "
                f"the largest shape has {most_nodes}, numbered from 0"
            )
