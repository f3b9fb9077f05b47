"""What is between the ranks, as far as an experiment can set it?

Two kinds: a `Network` joins nodes; a `NodePath` is a way inside one node. A network between nodes
is emulated, with a rate that we set, or found where a cluster has it, with no rate but what its
data sheet says; an entry may have a face for each platform (docs/decisions/0023).
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from broadgauge.messages.limits import MAX_NICS_PER_NODE
from broadgauge.messages.payload import VXLAN_HEADER_BYTES, payload_rate_gbps
from broadgauge.specs.base import Name, Spec, placed_error
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.face import NetworkFace
from broadgauge.specs.networks.found import Found
from broadgauge.specs.networks.pod_networks import AttachedNetwork
from broadgauge.specs.platforms import PlatformKind
from broadgauge.specs.secrets.variables import EnvironmentVariables
from broadgauge.specs.units import DelayS, RateGbps, show_rate, show_ratio, show_time

FEWER_NICS = "`nics_per_node: 1`, or another number"
NAME_MORE = "name one for each NIC, or take fewer NICs"


class SlowPair(Spec):
    """Two nodes with a slower way between them: a bad cable, an oversubscribed uplink."""

    nodes: tuple[int, int]
    """Numbers of the nodes, from 0; both directions are slowed."""
    rate_ratio: float = Field(gt=0, le=1)
    """The pair's rate over the network's, 0..1."""

    @model_validator(mode="after")
    def _two_nodes(self) -> "SlowPair":
        if self.nodes[0] == self.nodes[1] or min(self.nodes) < 0:
            raise ValueError("a pair is two different nodes, numbered from 0")
        return self


class Network(Spec):
    """One network between nodes: what each NIC of an emulated node is given, or where it is found.

    It emulates a TCP line rate, and where the kernel has netem delay and loss: not RDMA, offloads
    or a NIC's CPU cost. Labels in reports say so (`pod-like, 200 Mbit/s, TCP, no added delay`).
    """

    name: Name
    """In labels, selectors and a workload's `networks`."""
    rate_gbps: RateGbps | None = None
    """Line rate of each NIC and direction, 10^9 bit/s with Ethernet headers; null: unshaped."""
    rate_inferred_from: Annotated[str, Field(min_length=1)] | None = None
    """The rate is nobody's statement: what it was inferred from, and with which assumptions."""
    receive_rate_gbps: RateGbps | None = None
    """Line rate towards each node, where it differs; null: `rate_gbps`."""
    mtu_bytes: int = Field(default=1500, ge=576, le=65_000)
    """MTU of the link; under an overlay the ranks' own interface has 50 bytes less."""
    delay_s: DelayS = 0.0
    """Added to each packet that a node sends: half of what is added to the round trip."""
    jitter_s: DelayS = 0.0
    """Spread of that delay: netem's, uniform between delay − jitter and delay + jitter."""
    loss_ratio: float = Field(default=0.0, ge=0, le=0.5)
    """Share of the packets sent by a node that are lost, each by chance (netem)."""
    overlay: Literal["vxlan"] | None = None
    """A VXLAN device on each NIC, as a pod network has: every packet is encapsulated by the host.
    """
    nics_per_node: Annotated[int, Field(ge=1, le=MAX_NICS_PER_NODE)] | Literal["nodes"] = 1
    """NICs of each node, each on a subnet of its own and with the full rate. `nodes`: as many as
    there are nodes. Emulated, and of those attached to pods."""
    slow_pairs: tuple[SlowPair, ...] = Field(default=(), max_length=64)
    """Pairs of nodes with a slower link, to see whether it is found."""
    nccl_seen_gbps: RateGbps | Literal["default"] | None = None
    """The NIC speed NCCL is told by its topology file. null: the line rate (or, unshaped,
    100 Gbit/s). `default`: what NCCL reads from the device, 10 Gbit/s for a veth. Source:
    NCCL src/graph/topo.cc keeps a `speed` given in the XML."""
    found: Found | None = None
    """On hosts, whose networks are there already: which of them it is. With other keys beside it
    the entry has a face for each platform, and one file runs on all of them."""
    kubernetes: AttachedNetwork | None = None
    """On Kubernetes: what is attached to the pods. `pod` alone is the cluster's own network. With
    several NICs the first so many of those that it names."""
    environment: EnvironmentVariables = Field(default_factory=dict)
    """Variables for the ranks on this network, such as NCCL_SOCKET_NTHREADS."""
    description: str = ""
    """What it stands for, for the report."""

    @model_validator(mode="after")
    def _parts_agree(self) -> "Network":
        if self.receive_rate_gbps is not None and self.rate_gbps is None:
            raise placed_error(
                "`receive_rate_gbps` needs `rate_gbps` beside it", ("receive_rate_gbps",)
            )
        if self.rate_inferred_from is not None and self.rate_gbps is None:
            raise placed_error(
                "`rate_inferred_from` needs `rate_gbps` beside it", ("rate_inferred_from",)
            )
        if self.slow_pairs and self.rate_gbps is None:
            raise placed_error("`slow_pairs` are parts of a `rate_gbps`", ("slow_pairs",))
        if self.needs_netem and self.rate_gbps is None:
            raise placed_error(
                "delay and loss need `rate_gbps` beside them: they slow an unshaped link too",
                ("delay_s" if self.delay_s else "loss_ratio",),
            )
        if self.jitter_s > self.delay_s:
            raise placed_error("`jitter_s` is larger than `delay_s`", ("jitter_s",))
        return self

    @property
    def needs_netem(self) -> bool:
        """Does it ask for delay or loss, which only some kernels can emulate?"""
        return self.delay_s > 0 or self.loss_ratio > 0

    def on_nodes(self, nodes: int) -> "Network":
        """With `nodes` as a number, and the slow pairs that are there. Raises InputError."""
        nics = nodes if self.nics_per_node == "nodes" else self.nics_per_node
        trouble = self.why_not_on(nodes)
        if trouble is not None:
            raise InputError(f"networks.{self.name}.nics_per_node: {trouble}", hint=FEWER_NICS)
        pairs = tuple(pair for pair in self.slow_pairs if max(pair.nodes) < nodes)
        pods = self.kubernetes
        if pods is not None and not self.has_emulated_face:
            trouble = pods.why_not_with(nics)
            if trouble is not None:
                raise InputError(f"networks.{self.name}.nics_per_node: {trouble}", hint=NAME_MORE)
            pods = pods.with_nics(nics)
        update = {"nics_per_node": nics, "slow_pairs": pairs, "kubernetes": pods}
        differ = {key: value for key, value in update.items() if value != getattr(self, key)}
        changed: Network = self.model_copy(update=differ)  # what is set would count as said
        return changed

    def why_not_on(self, nodes: int) -> str | None:
        """What keeps so many nodes from having this network? None: nothing does."""
        if self.nics_per_node != "nodes" or nodes <= MAX_NICS_PER_NODE:
            return None
        return f"{nodes} nodes would have {nodes} NICs each, at most {MAX_NICS_PER_NODE} can be"

    @property
    def num_nics(self) -> int:
        """NICs of each node. Of a case's network only: there `nodes` has become a number."""
        assert self.nics_per_node != "nodes", self.name
        return self.nics_per_node

    @property
    def num_face_nics(self) -> int:
        """As `num_nics`, of a case's network that is found, which says by itself how many."""
        return self.num_nics if self.found is None else self.found.num_nics

    @property
    def nominal_node_gbps(self) -> float | None:
        """Of all NICs of a node by their data sheet, where it is there already and says it."""
        if self.face is None or self.face.nominal_gbps is None:
            return None
        return self.face.nominal_gbps * self.num_face_nics

    @property
    def slower_rate_gbps(self) -> float | None:
        """Of one NIC, the direction with the lower line rate."""
        rates = (self.rate_gbps, self.receive_rate_gbps)
        return min((rate for rate in rates if rate is not None), default=None)

    @property
    def node_rate_gbps(self) -> float | None:
        """Line rate of all NICs of a node, in its slower direction; None where unshaped."""
        rate = self.slower_rate_gbps
        return None if rate is None else rate * self.num_nics

    @property
    def payload_rate_gbps(self) -> float | None:
        """What one TCP stream over one NIC can carry; None where the link is unshaped."""
        if self.slower_rate_gbps is None:
            return None
        overlay_bytes = VXLAN_HEADER_BYTES if self.overlay else 0
        return payload_rate_gbps(self.slower_rate_gbps, self.mtu_bytes, overlay_bytes)

    @property
    def has_emulated_face(self) -> bool:
        """Is anything said of how it is emulated? An entry with no other face always is."""
        has_other = self.found is not None or self.kubernetes is not None
        return not has_other or bool(_EMULATED_KEYS & self.model_fields_set)

    @property
    def any_face(self) -> NetworkFace | None:
        """Of any platform's, be it emulated or not; a cluster's before hosts'."""
        return self.kubernetes or self.found

    @property
    def is_meant_as_rdma(self) -> bool:
        """Was it said to be an RDMA network? Of one that is found: what is emulated is TCP."""
        return self.face is not None and self.face.is_rdma

    @property
    def face(self) -> NetworkFace | None:
        """What a platform has there already; None: it is emulated. Of a case's network, which has
        the face of its platform only."""
        return self.kubernetes if self.found is None else self.found

    def has_face_on(self, platform: PlatformKind) -> bool:
        """Does it say which of this platform's own networks it is?"""
        return (self.kubernetes if platform == "kubernetes" else self.found) is not None

    def as_found_on(self, platform: PlatformKind) -> "Network":
        """What of it is true where it is there already: nothing that we would have set."""
        assert self.has_face_on(platform), self.name
        is_in_pods = platform == "kubernetes"
        return Network(
            name=self.name,
            found=None if is_in_pods else self.found,
            kubernetes=self.kubernetes if is_in_pods else None,
            nics_per_node=self.nics_per_node if is_in_pods else 1,
            environment=self.environment,
            description=self.description,
        )

    def as_emulated(self) -> "Network":
        """Without what it is elsewhere."""
        emulated: Network = self.model_copy(update={"found": None, "kubernetes": None})
        return emulated

    @property
    def label(self) -> str:
        """What was emulated, in words that claim no more than that; or where it was found."""
        if self.face is not None:
            return ", ".join([self.name, self.face.label, *self._nics_words()])
        words = [self.name, "unshaped" if self.rate_gbps is None else show_rate(self.rate_gbps)]
        if self.receive_rate_gbps is not None:
            words[-1] += f" out, {show_rate(self.receive_rate_gbps)} in"
        if self.rate_inferred_from is not None:
            words[-1] += " (inferred)"
        words += self._nics_words()
        words.append("TCP in VXLAN" if self.overlay else "TCP")
        if self.mtu_bytes != 1500:
            words.append(f"MTU {self.mtu_bytes}")
        words.append(self._delay_words())
        if self.loss_ratio:
            words.append(f"{show_ratio(self.loss_ratio)} lost")
        if self.slow_pairs:
            words.append(f"{len(self.slow_pairs)} slow pair{'s' * (len(self.slow_pairs) > 1)}")
        return ", ".join(words)

    def _nics_words(self) -> list[str]:
        if self.nics_per_node == "nodes":
            return ["as many NICs as nodes"]
        return [f"{self.nics_per_node} NICs"] if self.nics_per_node > 1 else []

    def _delay_words(self) -> str:
        if not self.delay_s:
            return "no added delay"
        spread = f" ± {show_time(self.jitter_s)}" if self.jitter_s else ""
        return f"{show_time(self.delay_s)}{spread} delay"


_EMULATED_KEYS = frozenset(Network.model_fields) - {
    *("name", "found", "kubernetes", "nics_per_node", "environment", "description")
}

PathKind = Literal["nvlink", "pcie", "shm", "sockets"]


class NodePath(Spec):
    """One way between the ranks of one node, whatever else the machine has.

    NCCL is told to leave the faster ones; what it really used is read from its log, and a trial on
    another path than this one fails. Gloo has no path but `sockets`.
    """

    name: Name
    """Name in tables, labels and selectors."""
    path: PathKind
    """`nvlink`; `pcie`: peer to peer without NVLink; `shm`: through the host's shared memory;
    `sockets`: TCP over the loopback interface."""
    environment: EnvironmentVariables = Field(default_factory=dict)
    """Variables for the ranks on this path."""
    description: str = ""
    """What it stands for, for the report."""

    planned: ClassVar[dict[str, str]] = {}

    @property
    def label(self) -> str:
        """In words."""
        words = {
            "nvlink": "NVLink",
            "pcie": "PCIe peer to peer, NVLink off",
            "shm": "shared memory of the host",
            "sockets": "TCP over loopback",
        }
        return f"{self.name}, {words[self.path]}, inside one node"


def _kind_of(value: Any) -> str:
    if isinstance(value, dict):
        return "inside" if "path" in value else "between"
    return "inside" if isinstance(value, NodePath) else "between"


AnyNetwork = Annotated[
    Annotated[Network, Tag("between")] | Annotated[NodePath, Tag("inside")],
    Discriminator(_kind_of),
]
"""Between nodes or inside one: the key `path` tells."""
