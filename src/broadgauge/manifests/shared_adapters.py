"""Can NCCL be told which of a pod's RDMA adapters are a network's, where no interface says so?

Adapters that a device plugin gives without an interface can be told from no others in the pod, and
as many as one network asks for are there for all.
"""

from collections.abc import Sequence

from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.networks.pod_networks import SecondaryNetwork

PER_CASE = "`kubernetes.allocation: per_case`: each case's pods have its own network only"
"""What helps where networks can't be in the same pods."""


def refuse_mixed_adapters(networks: Sequence[Network]) -> None:
    """Of one job's pods. Raises InputError."""
    faces = [
        (each, each.kubernetes)
        for each in networks
        if isinstance(each.kubernetes, SecondaryNetwork) and each.kubernetes.is_rdma
    ]
    given = [(each, face) for each, face in faces if face.attachment == "device-plugin"]
    for network, face in given:
        for other, others in faces:
            if other.name == network.name:
                continue
            if others.attachment != "device-plugin":
                raise InputError(
                    f"networks.{network.name}.kubernetes.attachment: `device-plugin` gives pods "
                    f"adapters without an interface, which NCCL can't tell from {other.name}'s",
                    hint=PER_CASE,
                )
            if (network.num_nics, face.resources) != (other.num_nics, others.resources):
                raise InputError(
                    f"networks.{network.name}.nics_per_node: {network.num_nics}, and "
                    f"{other.name} has {other.num_nics} of {', '.join(others.resources)}: the same "
                    "pods have all of them, and NCCL takes all",
                    hint=PER_CASE,
                )
    exclusive = [each for each, face in faces if face.rdma_namespace == "exclusive"]
    shared = [each for each, face in faces if face.attachment in ("macvlan", "ipvlan", "bridge")]
    if exclusive and shared:
        raise InputError(
            f"networks.{exclusive[0].name}.kubernetes.rdma_namespace: `exclusive` is a node's "
            f"mode, in which {shared[0].name} has no RDMA",
            hint="`rdma system` says which mode the nodes are in",
        )
