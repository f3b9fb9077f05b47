"""What is an agent in a pod told of a launch's network? What to look for: only there is it known
which interface, address and adapter that is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNetwork:
    """One network between the pods of a launch, as it was asked for."""

    name: str
    attachments: tuple[str, ...] = ()
    """`namespace/name` of the NetworkAttachmentDefinitions, one a NIC, in the pod's order; without
    a namespace: the pod's own. Empty: the pod network."""
    subnets: tuple[str, ...] = ()
    """Each NIC's addresses, `10.0.1.0/24`, where the attachment's status does not say enough."""
    num_nics: int = 1
    transport: str | None = None
    """`roce`, `infiniband`, `efa`, … must be RDMA; `tcp` must be sockets; None: as NCCL chooses."""
    gpudirect: bool | None = None
    """May and must the NIC read the GPUs' memory? None: as it comes."""

    @property
    def is_pod_network(self) -> bool:
        """Is it the network that every pod has?"""
        return not self.attachments
