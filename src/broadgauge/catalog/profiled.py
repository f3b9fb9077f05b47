"""What of a network in pods does its fabric's profile say, which the experiment does not?"""

from broadgauge.catalog.fabrics import FabricProfile, find_fabric
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.attachment_rules import DEFINED_HERE, missing_address
from broadgauge.specs.networks.network import Network
from broadgauge.specs.networks.pod_networks import SecondaryNetwork
from broadgauge.specs.networks.transports import RDMA

_ANY_SOURCE = ("whereabouts", "nv-ipam", "static")
"""Give a pod an address that is not its node's."""


def fabric_of(network: Network) -> FabricProfile | None:
    """None: it names no profile. Raises InputError for an unknown one."""
    face = network.kubernetes
    if not isinstance(face, SecondaryNetwork) or face.profile is None:
        return None
    try:
        return find_fabric(face.profile)
    except InputError as error:
        place = f"networks.{network.name}.kubernetes.profile"
        raise InputError(f"{place}: {error.message}", hint=error.hint) from error


def with_profile(network: Network) -> Network:
    """As the profile completes it; what the experiment says wins. Raises InputError where the two
    contradict each other.

    TCP forced on a fabric of RDMA is without its variables, which are RDMA's.
    """
    fabric, face = fabric_of(network), network.kubernetes
    if fabric is None or not isinstance(face, SecondaryNetwork):
        return network
    _check(network.name, face, fabric)
    own = fabric.resource
    resources = face.resources or (() if own is None else (own,))
    transport = face.transport or fabric.transport
    if transport in RDMA and not resources and fabric.attaches != "gke":
        raise InputError(
            f"networks.{network.name}.kubernetes.resources: {fabric.name} has no name of its own "
            "for the resource that gives pods /dev/infiniband",
            hint="as `kubectl describe node` lists it below Allocatable",
        )
    if face.attachment == "device-plugin" and transport not in RDMA:
        raise InputError(
            f"networks.{network.name}.kubernetes.transport: `{transport}`, and {fabric.name} gives "
            "pods no interface to send by",
            hint="TCP is the pod network's: `kubernetes: pod`",
        )
    has_mtu = face.mtu_bytes is None and face.attachment in DEFINED_HERE
    complete: SecondaryNetwork = face.model_copy(
        update={
            "transport": transport,
            "resources": resources,
            "nominal_gbps": face.nominal_gbps or fabric.nominal_gbps,
            "mtu_bytes": fabric.mtu_bytes if has_mtu else face.mtu_bytes,
        }
    )
    missing = missing_address(complete)
    if missing is not None:
        raise InputError(
            f"networks.{network.name}.kubernetes.ipam: {missing}",
            hint="`ipam: {kind: address-map, map: FILE}`, or `dhcp`",
        )
    is_forced = fabric.transport in RDMA and transport not in RDMA
    environment = {**({} if is_forced else fabric.environment), **network.environment}
    changed: Network = network.model_copy(
        update={"kubernetes": complete, "environment": environment}
    )
    return changed


def _check(name: str, face: SecondaryNetwork, fabric: FabricProfile) -> None:
    place = f"networks.{name}.kubernetes"
    if face.transport in RDMA and face.transport != fabric.transport:
        raise InputError(
            f"{place}.transport: `{face.transport}`, and {fabric.name} is {fabric.transport}",
            hint="leave `transport` out, or take another profile",
        )
    works = _attachments_of(fabric)
    if works and face.attachment not in works:
        raise InputError(
            f"{place}.attachment: `{face.attachment}` does not work on {fabric.name}",
            hint=f"`attachment: {'`, `'.join(works)}`",
        )
    if fabric.is_source_checked and face.ipam is not None and face.ipam.kind in _ANY_SOURCE:
        raise InputError(
            f"{place}.ipam.kind: `{face.ipam.kind}`, and {fabric.name} drops what is sent from "
            "any address but the node's own",
            hint="`ipam: {kind: address-map, map: FILE}`, or `dhcp`",
        )


def _attachments_of(fabric: FabricProfile) -> tuple[str, ...]:
    match fabric.attaches:
        case "resource":
            return ("device-plugin",)
        case "gke":
            return ("existing",)
    return fabric.attachments


def check_nics(network: Network) -> None:
    """Of a case's network: a fabric whose variables name its interfaces has all of them, or none.

    Raises InputError.
    """
    fabric = fabric_of(network)
    if fabric is None or fabric.attaches != "gke" or fabric.nics_per_node is None:
        return
    if network.num_nics != fabric.nics_per_node:
        raise InputError(
            f"networks.{network.name}.nics_per_node: {network.num_nics}, and {fabric.name} sends "
            f"by {fabric.nics_per_node}, which its variables name",
            hint=f"`nics_per_node: {fabric.nics_per_node}`, and as many `definitions`",
        )
