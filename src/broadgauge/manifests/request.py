"""What must be known to render one job? All of it: nothing is read from here on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from broadgauge.catalog.fabrics import FabricProfile, fabric_of
from broadgauge.manifests.interfaces import Interfaces, plan_interfaces
from broadgauge.manifests.labels import JobKind
from broadgauge.manifests.memory_need import MemoryNeed
from broadgauge.messages.pod_network import PodNetwork
from broadgauge.specs.attached import Attached
from broadgauge.specs.case import Case
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.kubernetes import Kubernetes
from broadgauge.specs.network import Network

LONGEST_NAME = 40
"""Room for what operators add: `<name>-worker-255` must be a DNS label of 63 characters."""


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """One job: the pods of one allocation, and what they find."""

    name: str
    """DNS label of 40 characters at most: the prefix of every object."""
    run: str
    """A label's value: what is deleted together."""
    owner: str | None = None
    """`user@host` of who runs it; None: it is rendered, for whoever applies it."""
    experiment: Experiment
    cases: tuple[Case, ...]
    """That this job runs."""
    networks: tuple[Network, ...]
    """What these cases use of `catalog.fabrics.pod_networks`: each with its face of Kubernetes."""
    kind: JobKind
    num_pods: int
    gpus_per_pod: int
    memory_bytes: int | None = None
    """Of each pod, its limit too, as the experiment says; None: it says nothing, and what is known
    of the need is asked for."""
    memory_need: MemoryNeed = field(default_factory=MemoryNeed)
    """Of each pod, as far as somebody has predicted it."""
    program: bytes = b""
    """The zip file that pods run."""
    orders: bytes = b""
    """What the leader is told first: JSON, compressed by gzip."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The user's, by path relative to where commands run."""
    address_map: str | None = None
    """Lines `host:device:interface:ip`."""
    linger_s: float | None = None
    """How long the leader waits for a tool once all is run; None: its own default."""
    secret_names: tuple[str, ...] = ()
    """Variables whose values are put into our own Secret by whoever creates it."""

    @property
    def settings(self) -> Kubernetes:
        """The experiment's `kubernetes`."""
        return self.experiment.kubernetes

    @property
    def ranks_per_pod(self) -> int:
        """The most that a case puts into one."""
        return max((case.ranks_per_node for case in self.cases), default=1)

    @cached_property
    def interfaces(self) -> Interfaces:
        """Of each pod. Raises InputError."""
        return plan_interfaces(
            self.networks,
            num_pods=self.num_pods,
            prefix=self.name,
            address_map=self.address_map,
        )

    @cached_property
    def fabrics(self) -> tuple[FabricProfile, ...]:
        """Profiles of the networks, each once. Raises InputError."""
        found = (fabric_of(each) for each in self.networks)
        return tuple({each.name: each for each in found if each is not None}.values())

    def pod_network(self, case: Case) -> PodNetwork | None:
        """What the agents are told of this case's network; None: it has none between nodes."""
        link = case.link
        if link is None or link.found is None:
            return None
        network = next(each for each in self.networks if each.name == link.name)
        attached, num_nics = network.kubernetes, link.num_nics
        assert attached is not None, network.name
        names = self.interfaces.of_network.get(network.name, ())[:num_nics]
        namespace = self.settings.namespace
        return PodNetwork(
            name=network.name,
            attachments=tuple(
                name if namespace is None or "/" in name else f"{namespace}/{name}"
                for name in names
            ),
            subnets=_subnets(attached, num_nics),
            num_nics=num_nics,
            transport=attached.transport,
            gpudirect=attached.gpudirect,
        )


def _subnets(attached: Attached, num_nics: int) -> tuple[str, ...]:
    """Of each NIC, as far as its IPAM's ranges say; empty: they don't."""
    ranges = (attached.address_range(nic) for nic in range(num_nics))
    return tuple(each for each in ranges if each is not None)
