"""What is this machine, node or pod made of, as far as it can be seen without privileges?

Read by `agent/hardware/`. What could not be read is None, never a guess; an empty tuple means that
there is none. Each field says which file it comes from where that is not plain.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PciDevice:
    """A device on the PCI bus, by /sys/bus/pci/devices."""

    address: str
    """`0000:3b:00.0`."""
    path: tuple[str, ...] = ()
    """From the root bus down to the device: `pci0000:3a`, `0000:3a:00.0`, `0000:3b:00.0`."""
    vendor: str | None = None
    """`0x15b3`."""
    device: str | None = None
    numa_node: int | None = None
    """None also where the kernel says -1: it does not know."""
    link_mt_per_s: int | None = None
    """A lane's transfer rate now: 32000 is 32 GT/s, PCIe 5."""
    max_link_mt_per_s: int | None = None
    link_width: int | None = None
    """Lanes in use."""
    max_link_width: int | None = None
    iommu_type: str | None = None
    """Of its IOMMU group: `identity` (nothing is translated), `DMA`, `DMA-FQ`; None: no group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NicFacts:
    """A network interface, by /sys/class/net; the loopback is none."""

    name: str
    kind: str
    """`physical`, `vf` (of SR-IOV), `virtio`, `veth`, `bridge`, `bond`, `vlan`, `macvlan`,
    `ipvlan`, `vxlan`, `geneve`, `tun`, `dummy`, `ipoib`, `cloud` (a hypervisor's own: ena, gve,
    hv_netvsc, vmxnet3) or `virtual` (another one without a device)."""
    state: str | None
    """`operstate`: `up`, `down`, `unknown`."""
    speed_mbps: int | None
    """As the driver says; None: it says nothing, or -1. A veth says 10000 whatever it carries."""
    mtu_bytes: int | None
    driver: str | None
    pci: PciDevice | None = None
    vendor: str | None = None
    """`device/vendor`, by which NCCL chooses threads and sockets; None: there is no such file."""
    addresses: tuple[str, ...] = ()
    """With the length of the prefix: `10.0.0.5/24`."""
    subnets: tuple[str, ...] = ()
    """Reached without a gateway, by /proc/net/route: `10.0.0.0/24`."""
    has_default_route: bool = False
    master: str | None = None
    """The bridge or bond that it belongs to."""
    counters: dict[str, int] = field(default_factory=dict)
    """Of `statistics/`, those of drops and errors."""
    received_packets_count: int | None = None
    sent_packets_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GidFacts:
    """One entry of a port's table, by `gids/` and `gid_attrs/`; empty ones are left out."""

    index: int
    gid: str
    """`0000:0000:0000:0000:0000:ffff:0a00:0005`."""
    kind: str | None
    """`IB/RoCE v1`, `RoCE v2`; None: refused, as of another network namespace."""
    interface: str | None = None
    ipv4: str | None = None
    """Of a GID that maps an IPv4 address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HcaPort:
    """One port of a host channel adapter."""

    number: int
    state: str | None
    """`ACTIVE`, `DOWN`, `INIT`, `ARMED`."""
    physical_state: str | None
    """`LinkUp`, `Polling`, `Disabled`."""
    rate_gbps: float | None
    """As the driver says: `400 Gb/sec (4X NDR)`."""
    link_layer: str | None
    """`InfiniBand` or `Ethernet`."""
    gids: tuple[GidFacts, ...] | None = None
    """None: the table can't be read."""
    counters: dict[str, int] = field(default_factory=dict)
    """Of `counters/` and `hw_counters/`, those of errors and congestion, by file name."""

    @property
    def roce_v2_ipv4_index(self) -> int | None:
        """The first GID of RoCE v2 with an IPv4 address, which is what jobs usually want."""
        found = (gid.index for gid in self.gids or () if gid.kind == "RoCE v2" and gid.ipv4)
        return next(found, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HcaFacts:
    """A host channel adapter (RDMA NIC), by /sys/class/infiniband."""

    name: str
    ports: tuple[HcaPort, ...]
    firmware: str | None
    board: str | None
    """`board_id`: `MT_0000000838`."""
    is_virtual_function: bool | None
    """None: it has no PCI device, as soft RoCE."""
    driver: str | None
    pci: PciDevice | None
    interfaces: tuple[str, ...]
    """Its network interfaces that are in this network namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDevice:
    """An NVIDIA GPU, by PCI class and vendor and by /proc/driver/nvidia/gpus."""

    pci: PciDevice
    model: str | None
    """`NVIDIA H200`."""
    minor: int | None
    """Of /dev/nvidia<minor>."""
    is_usable: bool | None
    """Is its device file here? False: the machine has it, this container does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PciDistance:
    """How far is a GPU from a NIC?"""

    gpu: str
    """PCI address."""
    device: str
    """Name of the HCA, else of the network interface."""
    distance: str
    """As `nvidia-smi topo -m` names it: `PIX` one PCIe switch, `PXB` several, `PHB` the CPU's host
    bridge, `NODE` two host bridges of one NUMA node (NCCL's PHB too), `SYS` two NUMA nodes;
    `unknown`: paths differ and no NUMA node is known, as in most VMs."""
    acs_bridges: tuple[str, ...] | None = None
    """Bridges between the two that redirect peer-to-peer traffic upwards; None: not all of them
    could be read, which needs root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RdmaFacts:
    """What a process needs beside an adapter."""

    device_files: tuple[str, ...]
    """/dev/infiniband/uverbs*."""
    refused_files: dict[str, str]
    """Those that this process may not open, and the kernel's words."""
    namespace_mode: str | None
    """`shared` or `exclusive`, by /sys/module/ib_core/parameters/netns_mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDriver:
    """NVIDIA's kernel modules, and what GPUDirect RDMA needs."""

    version: str | None
    is_open: bool | None
    """Open kernel modules, which DMA-BUF needs."""
    peer_memory: str | None
    """`nvidia_peermem` or `nv_peer_mem`; None: not loaded."""
    memory_peers: tuple[str, ...]
    """/sys/kernel/mm/memory_peers, of MLNX_OFED's kernel: where NCCL up to 2.22 looks."""
    has_gdrcopy: bool
    has_fabric_manager: bool | None
    """None: not visible, as in a container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitFacts:
    """What this process may use."""

    memlock_soft_bytes: int | None
    """None: see `is_memlock_known`."""
    memlock_hard_bytes: int | None
    is_memlock_known: bool
    """False: /proc/self/limits was not read. True and no figure: unlimited."""
    open_files_soft: int | None
    shm_size_bytes: int | None
    shm_free_bytes: int | None
    """None: not mounted, or not read."""
    has_shm: bool | None
    """Is something mounted at /dev/shm?"""
    memory_limit_bytes: int | None
    """Of the control group; None: none, or not read."""
    cpu_limit_millicores: int | None
    """Of the control group, in thousandths of a core; None: none, or not read."""
    cpus_online: int | None
    cpus_allowed: int | None
    """By this process's affinity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemFacts:
    """The system that this process sees."""

    hostname: str | None
    kernel: str | None
    distribution: str | None
    container: str | None
    """`kubernetes`, `docker`, `podman`, `container`; None: no sign of one."""
    user_id: int | None
    seccomp: str | None
    """`off`, `strict`, `filter`."""
    can_lock_memory: bool | None
    """CAP_IPC_LOCK is effective."""
    hypervisor: str | None
    """A VM: its maker's name, or `yes`; None: no sign of one."""
    numa_nodes: int | None
    has_numa_balancing: bool | None
    has_iommu: bool | None
    """An IOMMU translates for devices, by /sys/class/iommu; None: not visible."""
    iommu_words: tuple[str, ...] = ()
    """What the kernel's command line says of it: `iommu=pt`."""
    tcp_congestion_control: str | None = None
    tcp_rmem_max_bytes: int | None = None
    tcp_wmem_max_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryFacts:
    """A library that was found, not loaded."""

    name: str
    """`libnccl.so.2`."""
    path: str
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableFacts:
    """A variable that NCCL, one of its plugins or torch reads."""

    name: str
    value: str
    place: str
    """`environment`, or the file: `/etc/nccl.conf:3`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareFacts:
    """One machine, as seen by one process."""

    machine: SystemFacts
    nics: tuple[NicFacts, ...]
    hcas: tuple[HcaFacts, ...]
    gpus: tuple[GpuDevice, ...]
    distances: tuple[PciDistance, ...]
    rdma: RdmaFacts
    gpu_driver: GpuDriver | None
    """None: NVIDIA's kernel module is not loaded."""
    limits: LimitFacts
    nccl: tuple[LibraryFacts, ...]
    """In the order in which a process would find them."""
    libraries: dict[str, str | None]
    """libibverbs, librdmacm, libmlx5, libcuda → where it is; None: not found."""
    network_plugins: tuple[LibraryFacts, ...]
    """libnccl-net*.so on the library path."""
    variables: tuple[VariableFacts, ...]

    @property
    def nccl_version(self) -> str | None:
        """Of the first library that says."""
        return next((each.version for each in self.nccl if each.version), None)

    def effective_variables(self) -> dict[str, str]:
        """By name: the environment's, else the first file's, as NCCL takes them."""
        taken: dict[str, str] = {}
        for variable in self.variables:
            taken.setdefault(variable.name, variable.value)
        return taken
