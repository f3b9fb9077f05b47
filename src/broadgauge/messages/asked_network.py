"""What is a pod told of the network between its ranks? What to look for: only there is it known
which interface, address and adapter that is."""

import json
from dataclasses import dataclass
from typing import Literal

from broadgauge.messages.codec import DecodeError, Decoder, encode
from broadgauge.messages.vocabulary import Transport

Library = Literal["gloo", "nccl"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAttachment:
    """One NIC beside the pod network's."""

    definition: str
    """`namespace/name` of its NetworkAttachmentDefinition; without a namespace: the pod's own."""
    interface: str
    """As it was asked for. Not every plugin does as it is asked: the pod looks up what it is."""
    subnets: tuple[str, ...] = ()
    """In one of which its address is, where the experiment says it: `10.0.1.0/24`."""
    is_name_sure: bool = False
    """Does whoever attaches it promise the name, as GKE does?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedNetwork:
    """One network, as the experiment asks for it."""

    name: str
    transport: Transport | None = None
    """`roce`, `infiniband`, `efa`, … must be RDMA; `tcp` must be sockets; None: as NCCL chooses."""
    num_nics: int = 1
    attachments: tuple[AskedAttachment, ...] = ()
    """One a NIC, in the order of the network's; empty: ranks meet on the network that every pod
    has. With RDMA beside it: a device plugin gives adapters alone, without an interface."""
    gpudirect: bool | None = None
    """May and must the NIC read the GPUs' memory? None: as it comes."""
    libraries: tuple[Library, ...] = ("gloo", "nccl")
    """By which the ranks may send. Gloo knows sockets alone."""

    @property
    def is_pod_network(self) -> bool:
        """Do ranks meet on the network that every pod has?"""
        return not self.attachments

    @property
    def has_nccl(self) -> bool:
        return "nccl" in self.libraries


_ASKED: Decoder[AskedNetwork] = Decoder(AskedNetwork)


def network_word(network: AskedNetwork) -> str:
    """As one word of a command."""
    return json.dumps(encode(network), separators=(",", ":"))


def read_network_word(word: str) -> AskedNetwork:
    """Raises ValueError with what is wrong with it."""
    try:
        return _ASKED(json.loads(word))
    except RecursionError as error:
        raise ValueError("no JSON of a network: too deep") from error
    except (DecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"no JSON of a network: {error}") from error
