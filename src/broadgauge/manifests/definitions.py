"""Which NetworkAttachmentDefinition serves a NIC, and what is the interface that it gives a pod?

A definition serves all NICs that it serves alike, in every job.
"""

import json
import re
from dataclasses import dataclass

from broadgauge.manifests.cni import CniConfig
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.pod_networks import SecondaryNetwork

_MOST_STEM_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One interface of a pod beside the pod network's."""

    name: str
    """In the pod: `net1`, or what the address map calls it."""
    definition: str
    """Name of its NetworkAttachmentDefinition, `namespace/name` where it is elsewhere."""
    config: CniConfig | None
    """Of a definition that is rendered; None: it is there."""
    device: str | None
    """On the node."""
    resource: str | None
    """Extended resource that is asked for with it."""
    is_chosen_by_resource: bool
    """A device plugin says which device it is, and Multus must be told by which resource."""
    has_address: bool
    address_range: str | None
    """Out of which it gets its address, as far as the experiment says it."""
    left_out: tuple[str, ...]
    """Of that range, and the gateway within it."""
    gateway: str | None
    is_numbered: bool
    """We say which address of the range each pod has (`static`)."""
    is_mapped: bool
    """The address map gives its address."""
    networks: tuple[str, ...] = ()
    """That use it."""

    @property
    def network(self) -> str:
        """The first of them, for messages."""
        return self.networks[0]


class Definitions:
    """Which definitions does an experiment have? One for all NICs that it serves alike, in every
    job."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[str, str] = {}
        self._rendered_for: dict[str | None, str] = {}
        """By name, the first network of each that is written."""
        self.rendered: dict[str, Interface] = {}
        """By name, in the order in which they are first used."""

    def name_of(self, nic: "PodNic") -> str:
        """Raises InputError for a name that the experiment gives to two that differ."""
        known = self._names.get(nic.identity)
        if known is None:
            known = self._names[nic.identity] = self._new_name(nic)
            if nic.config is not None:
                self._rendered_for[known] = nic.network
        return known

    def _new_name(self, nic: "PodNic") -> str:
        taken = set(self._names.values())
        own = nic.definition
        if nic.config is None and own in self._rendered_for:
            raise InputError(
                f"networks.{nic.network}.kubernetes.definitions: `{own}` is one that is rendered, "
                f"for {self._rendered_for[own]}",
                hint="another `kubernetes.name`, or that network's own settings",
            )
        if nic.definition is not None:
            if nic.definition in taken and nic.config is not None:
                raise InputError(
                    f"networks.{nic.network}.kubernetes.definitions: `{nic.definition}` would be "
                    "written twice, each time otherwise",
                    hint="give each its own name, or leave `definitions` out",
                )
            return nic.definition
        what = nic.device or (nic.resource or nic.attached.attachment).rpartition("/")[2]
        stem = f"{self._prefix}-{_slug(what)}"[:_MOST_STEM_CHARACTERS].rstrip("-.")
        numbered = (f"{stem}-{number}" for number in range(2, len(taken) + 3))
        return next(name for name in (stem, *numbered) if name not in taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNic:
    """What one NIC of a network asks for."""

    network: str
    attached: SecondaryNetwork
    number: int
    config: CniConfig | None

    @property
    def identity(self) -> str:
        """Equal for NICs that one definition serves."""
        if self.config is None:
            return f"existing {self.definition}"
        resource = self.resource if self.attached.is_chosen_by_resource else None
        return json.dumps([self.definition, self.config, resource], sort_keys=True)

    @property
    def definition(self) -> str | None:
        names = self.attached.definitions
        return names[self.number] if names else None

    @property
    def device(self) -> str | None:
        names = self.attached.devices
        return names[self.number] if names else None

    @property
    def resource(self) -> str | None:
        return self.attached.resource_of(self.number)

    @property
    def address_range(self) -> str | None:
        ipam = self.attached.ipam
        return ipam.ranges[self.number] if ipam is not None and ipam.ranges else None


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "nic"
