"""Which further networks does an RDMA network bring along, so that its effects separate?

The same NICs with TCP forced (`<name>-tcp`): what RDMA gives. The same with RDMA, and the host
copying (`<name>-without-gpudirect`): what GPUDirect gives.
"""

from broadgauge.specs.attached import Attached, Twin
from broadgauge.specs.network import AnyNetwork, Network

ALL: tuple[Twin, ...] = ("tcp", "without-gpudirect")


def twins_of(network: Network) -> tuple[Network, ...]:
    """On Kubernetes; none of a network that is not meant to send by RDMA."""
    attached = network.kubernetes
    if attached is None or not attached.is_rdma:
        return ()
    return tuple(_twin(network, attached, twin) for twin in _kinds(attached))


def names_with_twins(network: AnyNetwork) -> tuple[str, ...]:
    """What is meant where the network is named: itself, then its twins. Of a network whose profile
    says the transport, those that it may have."""
    attached = network.kubernetes if isinstance(network, Network) else None
    may_be_rdma = attached is not None and attached.transport is None and attached.profile
    if attached is None or not (attached.is_rdma or may_be_rdma):
        return (network.name,)
    return (network.name, *(f"{network.name}-{twin}" for twin in _kinds(attached)))


def _kinds(attached: Attached) -> tuple[Twin, ...]:
    if attached.twins is not None:
        return attached.twins
    return tuple(each for each in ALL if each == "tcp" or attached.gpudirect is not False)


def _twin(network: Network, attached: Attached, twin: Twin) -> Network:
    if twin == "without-gpudirect":
        face, nics = attached.model_copy(update={"gpudirect": False}), network.nics_per_node
        what = "RDMA, and the host copies"
    else:
        over = {"transport": "tcp", "gpudirect": None}
        face = attached.model_copy(update=over)
        nics = 1 if attached.is_pod_network else network.nics_per_node
        what = "TCP on the same NICs"
    changed = {
        "name": f"{network.name}-{twin}",
        "kubernetes": face.model_copy(update={"twins": ()}),
        "nics_per_node": nics,
        "description": f"{network.name} with {what}",
    }
    copied: Network = network.model_copy(update=changed)
    return copied
