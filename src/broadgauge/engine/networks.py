"""Which networks of an experiment can be had on this machine?"""

from collections.abc import Iterator, Sequence

from broadgauge.catalog.fabrics import pod_networks
from broadgauge.engine.shapes import ResolvedCluster
from broadgauge.specs.attached import MORE_NICS
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.network import AnyNetwork, Network, NodePath


def networks_here(
    experiment: Experiment, cluster: ResolvedCluster
) -> tuple[tuple[AnyNetwork, ...], list[str]]:
    """The networks as they will be built, and what was left out of them.

    Raises InputError where one can't be built here.
    """
    networks: list[AnyNetwork] = []
    notes: list[str] = []
    on_gpus_only: list[str] = []
    for network in experiment.networks:
        if isinstance(network, NodePath):
            if _can_use(network, cluster):
                networks.append(network)
            else:
                notes.append(f"path {network.name} is left out: it is between GPUs, here are CPUs")
        elif cluster.devices.finds_networks:
            if network.found_on(cluster.platform) is None:
                notes.append(f"{_here(cluster, network)}: it does not say {_face(cluster)}")
                continue
            for found in _found(network, cluster):
                if experiment.cluster.device == "cpu" and found.is_meant_as_rdma:
                    on_gpus_only.append(found.name)
                else:
                    _check_backends(found, cluster)
                    networks.append(found)
        elif not network.has_emulated_face:
            notes.append(f"{_here(cluster, network)}: it is found elsewhere, and not emulated")
        else:
            built, note = _built(experiment, cluster, network.as_emulated())
            networks.append(built)
            notes += [] if note is None else [note]
    if on_gpus_only:
        notes.append(_rdma_note(on_gpus_only))
    _refuse_if_none_is_left(experiment, cluster, networks)
    return tuple(networks), notes


def _rdma_note(names: Sequence[str]) -> str:
    """One, however many NICs and twins the axis has."""
    is_one = len(names) == 1
    what = f"network {names[0]} is" if is_one else f"networks {', '.join(names)} are"
    return f"{what} left out: meant as RDMA, and ranks on CPUs talk over Gloo, which sends over TCP"


def _found(network: Network, cluster: ResolvedCluster) -> Iterator[Network]:
    """What is there on the platform; on Kubernetes with its twins. Raises InputError."""
    is_attached = cluster.platform == "kubernetes"
    for each in pod_networks((network,)) if is_attached else (network,):
        _check_nics(each, cluster)
        yield each.as_found(cluster.platform)


def _check_nics(network: Network, cluster: ResolvedCluster) -> None:
    """Raises InputError where a pod's template would name fewer NICs than a case takes."""
    if cluster.platform != "kubernetes" or network.kubernetes is None:
        return
    most_nodes = max((shape.nodes for shape in cluster.shapes if shape.nodes > 1), default=None)
    if most_nodes is None:
        return
    trouble = network.kubernetes.why_not_with(network.on_nodes(most_nodes).num_nics)
    if trouble is not None:
        raise InputError(f"networks.{network.name}.nics_per_node: {trouble}", hint=MORE_NICS)


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


def _check_backends(network: Network, cluster: ResolvedCluster) -> None:
    """Raises InputError for RDMA where nothing but Gloo runs; beside NCCL, Gloo is left out."""
    has_nccl = "nccl" in cluster.backends
    if network.is_meant_as_rdma and not has_nccl and not cluster.has_one_node_only:
        assert network.found is not None
        raise InputError(
            f"networks.{network.name}: `transport: {network.found.transport}` is RDMA, and the "
            "backend here is gloo, which sends over TCP",
            hint="`backend: nccl` on GPUs, or leave `transport` out, or say `transport: tcp`",
        )


def _face(cluster: ResolvedCluster) -> str:
    """What an entry lacks that has none for the platform."""
    if cluster.platform == "kubernetes":
        return "what is attached to a pod (`kubernetes`)"
    if cluster.platform == "skypilot":
        return "which tier it is (`skypilot`)"
    return "where it is `found`"


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
    between = [each for each in experiment.networks if isinstance(each, Network)]
    if not between or len(experiment.platforms) > 1:
        return
    if cluster.devices.finds_networks and any(each.found_on(cluster.platform) for each in between):
        trouble = "all networks are meant as RDMA, and ranks on CPUs talk over Gloo, over TCP"
        hint = "`device: cuda` on GPUs, or leave `transport` out, or say `transport: tcp`"
    elif cluster.devices.finds_networks:
        trouble = f"the platform {cluster.platform} has its own networks, and is not told which"
        hint = "say where it is: `found: {interface: eth0}` or `found: {subnet: 10.0.0.0/24}`"
        if cluster.platform == "kubernetes":
            hint = "say what a pod is given: `kubernetes: pod`, or a secondary network"
        if cluster.platform == "skypilot":
            hint = "say which tier it is: `skypilot: standard`, or `skypilot: best`"
    else:
        trouble = f"it is `found` on a cluster, and the platform {cluster.platform} has none there"
        hint = "say how to emulate it beside `found` (`rate_gbps: …`), or take shapes of one node"
    raise InputError(f"networks.{between[0].name}: {trouble}", hint=hint)


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
