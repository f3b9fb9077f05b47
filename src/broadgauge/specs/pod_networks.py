"""What is a network to a pod? `networks[].kubernetes`: what is attached to each pod of a job."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator

from broadgauge.specs.base import InOneWord, not_yet, placed_error
from broadgauge.specs.network_face import NetworkFace
from broadgauge.specs.transports import RDMA, Transport

POD_INTERFACE = "eth0"
"""What a pod's own interface is called. Source: CRI-O, ocicni's `DefaultInterfaceName`;
containerd, go-cni's default prefix `eth` and the first network's number."""
PLANNED_ATTACHMENTS = ("host-device", "macvlan", "ipvlan", "bridge", "sriov", "existing")


class PodNetwork(NetworkFace):
    """The network that every pod of the cluster has, and nothing beside it."""

    attachment: Literal["pod"]
    """`pod`: the cluster's own network, which needs nothing."""
    transport: Transport | None = "tcp"
    """NCCL is told to send by sockets: adapters of RDMA that a pod may see are not on this network.
    """

    @model_validator(mode="before")
    @classmethod
    def _refuse_planned_attachments(cls, data: Any) -> Any:
        attachment = data.get("attachment") if isinstance(data, dict) else None
        if attachment in PLANNED_ATTACHMENTS:
            raise placed_error(not_yet(str(attachment), "a secondary network"), ("attachment",))
        return data

    @model_validator(mode="after")
    def _sends_by_sockets(self) -> "PodNetwork":
        if self.transport in RDMA:
            raise placed_error(
                f"the pod network has no RDMA (`{self.transport}`)",
                ("transport",),
                "leave `transport` out",
            )
        return self

    @property
    def key(self) -> str:
        return "kubernetes"

    @property
    def place(self) -> str:
        return "pod network"

    @property
    def interface(self) -> str:
        """Of the pod, as Gloo and NCCL are told it."""
        return POD_INTERFACE


AttachedNetwork = Annotated[PodNetwork, BeforeValidator(InOneWord("attachment"))]
"""An object, or its `attachment` alone: `kubernetes: pod`."""
