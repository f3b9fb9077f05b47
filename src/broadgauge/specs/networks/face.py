"""What can be said of a network that a platform has already, whatever the platform is?

An entry of `networks` has a face for each platform: `found` on hosts, `kubernetes` in pods. Each
says in its platform's words which network is meant; what is common to them stands here, and is all
that a plan, a label or a check of NCCL's log asks for (docs/decisions/0023).
"""

from pydantic import model_validator

from broadgauge.messages.vocabulary import Transport
from broadgauge.specs.base import Spec, placed_error
from broadgauge.specs.networks.transports import NAMES, RDMA
from broadgauge.specs.units import RateGbps, show_rate


class NetworkFace(Spec):
    """One network as one platform has it."""

    nominal_gbps: RateGbps | None = None
    """Line rate of each NIC by its data sheet or the catalog. null: not known. It labels; what the
    network carries is measured in each launch."""
    transport: Transport | None = None
    """What NCCL is to send by: RDMA (`roce`, `infiniband`, `efa`, …) or sockets (`tcp`, …). A case
    that went another way fails. null: whatever NCCL chooses."""
    gpudirect: bool | None = None
    """Does the NIC read and write the GPUs' memory? A case in which it is otherwise fails; `false`
    keeps NCCL from it. Of RDMA only. null: as it comes."""

    @model_validator(mode="after")
    def _gpudirect_is_of_rdma(self) -> "NetworkFace":
        if self.gpudirect is not None and not self.is_rdma:
            raise placed_error(
                "`gpudirect` needs a `transport` of RDMA beside it",
                ("gpudirect",),
                f"`transport: {'`, `'.join(RDMA)}`",
            )
        return self

    @property
    def key(self) -> str:
        """Under which key of a network it stands: `found`."""
        raise NotImplementedError

    @property
    def place(self) -> str:
        """Where it is, in words: `found at eth1`."""
        raise NotImplementedError

    @property
    def is_rdma(self) -> bool:
        """Is it meant to send by RDMA?"""
        return self.transport in RDMA

    @property
    def is_sockets(self) -> bool:
        """Is it meant to send by TCP, whatever else the machines have?"""
        return self.transport is not None and not self.is_rdma

    @property
    def transport_words(self) -> str | None:
        """`RoCE with GPUDirect`; None: nothing is said of it."""
        if self.transport is None:
            return None
        gpudirect = {None: "", True: " with GPUDirect", False: " without GPUDirect"}
        return NAMES[self.transport] + gpudirect[self.gpudirect]

    @property
    def label(self) -> str:
        """In words."""
        words = [self.place]
        words += [] if self.nominal_gbps is None else [f"nominal {show_rate(self.nominal_gbps)}"]
        words += [] if self.transport_words is None else [self.transport_words]
        return ", ".join(words)
