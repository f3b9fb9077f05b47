"""What is known of a job from its logs? Filled while they are read; what nobody said is None.

Processes are told apart by host and process id, as NCCL's prefix has them; ranks belong to a
communicator, of which a process may have several.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv6Address
from typing import NamedTuple

from broadgauge.doctor.log.rule import Rule


class Place(NamedTuple):
    """Where a line stands."""

    file: str
    """As the user named it; `-` is stdin."""
    line: int
    """From 1."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Speaker(NamedTuple):
    """Which process said it."""

    host: str
    pid: int


class Way(StrEnum):
    """How bytes go from one rank to another."""

    P2P = "P2P"
    """GPU to GPU, NVLink or PCIe."""
    SHM = "SHM"
    """Through the host's memory."""
    SOCKETS = "sockets"
    NETWORK = "network"
    """RDMA or a plugin's network; GPU memory is copied through the host's."""
    GDRDMA = "GDRDMA"
    """The NIC reads and writes the GPU's memory."""
    COLLNET = "COLLNET"
    NVLS = "NVLS"


class Adapter(NamedTuple):
    """One host channel adapter that NCCL listed."""

    name: str
    """`mlx5_0:1`."""
    link: str
    """`IB`, `RoCE`, or what a plugin calls it."""
    speed_mbps: int | None = None


@dataclass(slots=True)
class ProcessFacts:
    """One process; None and empty: its lines do not say."""

    speaker: Speaker
    place: Place
    """Its first line."""
    last_place: Place | None = None
    """Its last line; None: as the first."""
    version: str | None = None
    """Of NCCL: `2.28.9`."""
    devices: set[int] = field(default_factory=set)
    """CUDA device numbers of its lines' prefix."""
    network: str | None = None
    """`IB`, `Socket`, `AWS Libfabric`; the last said."""
    plugin: str | None = None
    """External network plugin that was loaded."""
    missing_plugins: set[str] = field(default_factory=set)
    unloadable_plugins: dict[str, str] = field(default_factory=dict)
    """By name: a plugin that is there, and why its library can't be loaded."""
    failed_plugins: set[str] = field(default_factory=set)
    """Networks that NCCL found and could not initialise, its own among them: `Libfabric`, `IB`."""
    wanted_plugin: str | None = None
    """Of a name that nobody looks for by himself: somebody asked for it."""
    provider: str | None = None
    """That aws-ofi-nccl took from libfabric: `efa`, `cxi`, `tcp`."""
    bootstrap: str | None = None
    """Interface: `eth0`."""
    interfaces: tuple[str, ...] = ()
    """That the socket network uses."""
    addresses: dict[str, str] = field(default_factory=dict)
    """By interface, of bootstrap and socket network: `192.0.2.1`."""
    adapters: dict[str, Adapter] = field(default_factory=dict)
    gdr_by_adapter: dict[str, bool] = field(default_factory=dict)
    """The adapter's name without port → can the NIC reach GPU memory at all?"""
    gdr_by_pair: dict[tuple[str, str], bool] = field(default_factory=dict)
    """(GPU, adapter) as NCCL writes them → is it near enough?"""
    dma_buf_devices: set[int] = field(default_factory=set)
    has_multicast: bool | None = None
    """Can NVLink multicast (NVLS) be used, by what it says of its devices? True: of any."""
    has_nvswitch: bool = False
    """An NVSwitch is in its table of the machine."""
    default_speed_interfaces: set[str] = field(default_factory=set)
    """Whose speed NCCL could not read, and takes for 10 Gbit/s."""
    ring_channels: int | None = None
    """How many rings its own machine allows, of the last communicator."""
    seen_gbps: float | None = None
    """What NCCL takes its slowest NIC for."""
    gpu_of_rank: dict[int, str] = field(default_factory=dict)
    """Bus of each rank's GPU on this node, by the last table of the machine: `60`."""
    gpu_distances: dict[tuple[str, str], str] = field(default_factory=dict)
    """(bus, bus) → `NVL`, `NVB`, `PIX`, `PXB`, `PHB`, `SYS`, by that table."""
    socket_threads: int | None = None
    sockets_per_thread: int | None = None
    gid_indices: set[int] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)
    """NCCL_* as NCCL says it read them; secrets masked."""
    init_s: float | None = None
    """The longest initialisation of a communicator."""
    bootstrap_s: float | None = None


@dataclass(slots=True)
class CommunicatorFacts:
    """One communicator, as all of its ranks told of it."""

    identity: str
    """`0xd6d083b90d00278e`, NCCL's commId; where the version says none: host and address."""
    place: Place
    num_ranks: int | None = None
    num_nodes: int | None = None
    """What NCCL takes for nodes."""
    local_ranks: dict[int, int] = field(default_factory=dict)
    """By rank: how many ranks NCCL sees on its node."""
    has_mnnvl: bool = False
    """NVLink joins GPUs of several hosts."""
    members: dict[int, Speaker] = field(default_factory=dict)
    """By rank."""
    started: set[int] = field(default_factory=set)
    """Ranks whose initialisation began: `Init START`."""
    completed: set[int] = field(default_factory=set)
    """Ranks whose initialisation completed: `Init COMPLETE`."""
    num_channels: int | None = None
    """Of collectives."""
    num_nvls_channels: int | None = None
    num_collnet_channels: int | None = None
    num_p2p_channels: int | None = None
    rings: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By channel: the ranks in order."""
    has_trees: bool | None = None
    has_nvls: bool | None = None
    has_connected: bool = False
    """`Connected all rings`, of any rank."""
    paths: dict[tuple[int, int], dict[Way, set[int]]] = field(default_factory=dict)
    """(from, to) → way → its channels."""
    path_devices: dict[tuple[int, int], set[str]] = field(default_factory=dict)
    """(from, to) → network devices: `NET/IB/0`."""
    proxies: dict[tuple[int, int], int] = field(default_factory=dict)
    """(from, to) → the rank whose NIC is used over NVLink (PXN)."""
    buses: dict[int, str] = field(default_factory=dict)
    """By rank: its GPU's, in hexadecimal: `60`."""
    p2p_lines: dict[tuple[int, int], dict[str | None, str]] = field(default_factory=dict)
    """(from, to) → how far the table says that they are → the first line; None: not said."""
    lines: dict[tuple[Way, bool], tuple[Place, str]] = field(default_factory=dict)
    """The first line of each way; the second key: between nodes, as far as known."""


@dataclass(slots=True)
class Seen:
    """What lines of one rule said with the same words, all of them together."""

    rule: Rule
    fields: dict[str, str]
    count: int = 0
    lines: list[tuple[Place, str]] = field(default_factory=list)
    """The first three."""
    speakers: set[Speaker] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)
    """Of lines of others than NCCL that name their rank, as torch's do: `[rank3]:`; the first
    thousands."""
    first_clock: str | None = None
    """Time of day of the first line that has one, as it is written: `15:16:23`."""
    last_clock: str | None = None
    devices: Counter[int] = field(default_factory=Counter)


class Measured(NamedTuple):
    """A bus bandwidth that nccl-tests printed."""

    place: Place
    text: str
    busbw_gbyte_per_s: float
    size_bytes: int | None = None
    """Of the message; None: the average over all of them."""
    op: str | None = None
    """As Broadgauge names it: `all_reduce`; None: the log does not say."""
    ops: tuple[str, ...] = ()
    """Those that its columns fit, where no line names it."""
    num_wrong: int = 0
    """Values that arrived wrong, out of place or in place, whichever are more."""


class ListedRank(NamedTuple):
    """A rank that nccl-tests lists above its table."""

    host: str
    gpu: str
    """As the driver names it."""


class LastWords(NamedTuple):
    """One process's last words, as far as told."""

    words: str
    """`KeyError: 'text'`; of a line without a name of an exception all of it."""
    place: Place
    text: str
    """The line."""
    rank: int | None
    clock_s: float | None
    """Of the day, where the line has a time."""
    is_raised: bool
    """An exception of which no rule knows anything; else perhaps a consequence: the line calls
    itself an error, names a signal or an exit code, or a rule knows it as one of several."""
    has_exception: bool = True
    """It names an exception, known or not."""
    is_interrupt: bool = False


class ListedPort(NamedTuple):
    """A port of an adapter, as `ibstat` or `ibv_devinfo` lists it."""

    place: Place
    name: str
    """`mlx5_3:1`."""
    state: str
    """`Active`, `Down`, `Initializing`."""
    physical_state: str
    """`LinkUp`, `Polling`, `Disabled`; `unknown` where the program does not say it."""
    link: str | None = None
    """`InfiniBand`, `Ethernet`."""
    mtu_bytes: int | None = None
    """Of the RDMA packets that it sends: 1024 or 4096."""
    most_mtu_bytes: int | None = None
    """That the adapter could."""


class ListedGid(NamedTuple):
    """An address of an adapter's port, as `show_gids` or `ibv_devinfo -v` lists it."""

    place: Place
    device: str | None
    """`mlx5_bond_0`; None: the line does not say."""
    entry: int
    """Of its port's table: what NCCL_IB_GID_INDEX chooses."""
    address: IPv6Address
    """IPv4 ones as `::ffff:10.20.9.6`."""
    is_roce_v2: bool


class ListedDistances(NamedTuple):
    """One table of `nvidia-smi topo -m`."""

    place: Place
    distances: dict[tuple[str, str], str]
    """(GPU, GPU or NIC) → `NV18`, `PIX`, `SYS`."""
    nic_names: dict[str, str]
    """`NIC0` → `mlx5_0`, by the legend below it."""


class UnknownWarning(NamedTuple):
    """A warning of NCCL's, or of a plugin of it, that no rule knows."""

    place: Place
    text: str
    speaker: Speaker
    origin: str
    """The file, or the function, that printed it; empty: not said."""


@dataclass(slots=True)
class LogReading:
    """All that was read from one job's logs."""

    processes: dict[Speaker, ProcessFacts] = field(default_factory=dict)
    communicators: dict[str, CommunicatorFacts] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    """Of rules that have findings or tell `noted`, in the order first said."""
    num_seen_left_out: int = 0
    """Lines of rules with findings that told a thousand other things before."""
    num_lines: int = 0
    lines_of_file: dict[str, int] = field(default_factory=dict)
    num_nccl_lines: int = 0
    has_rccl: bool = False
    """Its library is AMD's RCCL, which prints as NCCL and has versions of its own."""
    num_bytes: int = 0
    unknown_warnings: list[UnknownWarning] = field(default_factory=list)
    """NCCL WARN lines that no rule knows: the first twenty."""
    endings: list[LastWords] = field(default_factory=list)
    """What programs said as they ended, where no rule explains it."""
    num_known_lines: int = 0
    """Of anyone but NCCL, that a rule or a reader of tables knows."""
    ports: list[ListedPort] = field(default_factory=list)
    """RDMA ports that `ibstat` or `ibv_devinfo` printed."""
    gids: list[ListedGid] = field(default_factory=list)
    """Addresses of adapters that `show_gids` or `ibv_devinfo -v` printed."""
    distances: list[ListedDistances] = field(default_factory=list)
    """Tables of `nvidia-smi topo -m`, of whichever hosts."""
    gpu_names: set[str] = field(default_factory=set)
    """As the driver names them, where a program printed them."""
    listed_ranks: dict[int, ListedRank] = field(default_factory=dict)
    """By rank, of nccl-tests' list of devices."""
    measured: list[Measured] = field(default_factory=list)
    printed_variables: dict[str, tuple[Place, str]] = field(default_factory=dict)
    """NCCL variables that the job itself printed, as `env` does; masked."""
    problems: list[str] = field(default_factory=list)
    """What could not be read: a cut archive, a file that vanished."""
