"""Trees of /sys, /proc and /dev as machines have them: what readers of hardware are tried on.

Values are those of real machines where they are known: a DGX-like node, a RoCE server, a pod with
an SR-IOV VF, a pod with nothing but a veth, a VM with virtio.
"""

import ipaddress
import os
import socket
from collections.abc import Iterable
from pathlib import Path

GIB = 2**30
CX7 = ("0x15b3", "0x1021")
CX6_VF = ("0x15b3", "0x101e")
H100 = ("0x10de", "0x2330")
LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units\n"
    "Max cpu time              unlimited            unlimited            seconds\n"
    "Max open files            1048576              1048576              files\n"
    "Max locked memory         {soft:<20} {hard:<20} bytes\n"
)
OPEN_DRIVER = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build"
    "  (dvs-builder)\nGCC version:  gcc version 12.3.0\n"
)
CLOSED_DRIVER = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Mon Feb 19 03:37:05 UTC 2024\n"
)
INFORMATION = """\
Model: \t\t {model}
IRQ:   \t\t 130
GPU UUID: \t GPU-00000000-0000-0000-0000-000000000000
Bus Type: \t PCIe
Device Minor: \t {minor}
"""


class Machine:
    """A tree that is being built."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.routes: list[str] = []
        self.own_addresses: list[str] = []
        self.numbers = 0

    def file(self, path: str, text: str | bytes) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)

    def files(self, folder: str, texts: dict[str, object]) -> None:
        for name, text in texts.items():
            self.file(f"{folder}/{name}", f"{text}\n")

    def link(self, path: str, target: str) -> None:
        """To a path of this machine; as sysfs does, by a relative one."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        end = self.root / target.lstrip("/")
        end.mkdir(parents=True, exist_ok=True)
        place.symlink_to(os.path.relpath(end, place.parent))

    def base(
        self,
        *,
        kernel: str = "5.15.0-1063-nvidia",
        memlock: tuple[str, str] = ("unlimited", "unlimited"),
        capabilities: str = "0000000000000000",
        cpus: int = 224,
        numa: str = "0-1",
        shm: str = "size=1056438404k",
        cgroup: str = "0::/user.slice\n",
        is_vm: bool = False,
    ) -> None:
        self.file("/proc/sys/kernel/osrelease", f"{kernel}\n")
        self.file("/proc/sys/kernel/hostname", "node0\n")
        self.file("/proc/sys/kernel/numa_balancing", "0\n")
        self.file("/etc/os-release", 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.4 LTS"\n')
        self.file("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/md0 iommu=pt quiet\n")
        self.file("/proc/cpuinfo", f"flags\t\t: fpu sse2{' hypervisor' if is_vm else ''} avx512f\n")
        self.file("/proc/self/limits", LIMITS.format(soft=memlock[0], hard=memlock[1]))
        self.file(
            "/proc/self/status",
            f"Name:\tpython\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t{capabilities}\nSeccomp:\t2\n"
            f"Cpus_allowed_list:\t0-{cpus - 1}\n",
        )
        self.file("/proc/self/cgroup", cgroup)
        self.file(
            "/proc/self/mountinfo", f"25 24 0:23 / /dev/shm rw,relatime - tmpfs tmpfs rw,{shm}\n"
        )
        self.file("/sys/devices/system/cpu/online", f"0-{cpus - 1}\n")
        self.file("/sys/devices/system/node/online", f"{numa}\n")
        self.file("/proc/sys/net/ipv4/tcp_congestion_control", "cubic\n")
        self.file("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n")
        self.file("/proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n")
        self.libraries("libibverbs.so.1", "librdmacm.so.1", "libmlx5.so.1", "libcuda.so.1")

    def libraries(self, *names: str) -> None:
        for name in names:
            self.file(f"/usr/lib/x86_64-linux-gnu/{name}", "")

    def pci(
        self,
        path: Iterable[str],
        ids: tuple[str, str],
        *,
        kind: str = "0x020700",
        numa: int = 0,
        link: tuple[str, str] = ("32.0 GT/s PCIe", "32.0 GT/s PCIe"),
        width: tuple[int, int] = (16, 16),
        iommu: str | None = None,
    ) -> str:
        """Gives the folder of its last device."""
        parts = list(path)
        folder = "/sys/devices/" + "/".join(parts)
        self.files(
            folder,
            {
                "vendor": ids[0],
                "device": ids[1],
                "class": kind,
                "numa_node": numa,
                "current_link_speed": link[0],
                "max_link_speed": link[1],
                "current_link_width": width[0],
                "max_link_width": width[1],
            },
        )
        for at in range(1, len(parts)):
            address = parts[at]
            bus = self.root / "sys/bus/pci/devices" / address
            if not bus.is_symlink():
                self.link(
                    f"/sys/bus/pci/devices/{address}", "/sys/devices/" + "/".join(parts[: at + 1])
                )
        if iommu is not None:
            group = f"/sys/kernel/iommu_groups/{len(parts)}{parts[-1][5:7]}"
            self.file(f"{group}/type", f"{iommu}\n")
            self.link(f"{folder}/iommu_group", group)
        return folder

    def acs(self, address: str, control: int | None) -> None:
        """An ACS capability of this control word at 0x100; None: the 64 bytes that anyone reads."""
        data = bytearray(4096 if control is not None else 64)
        if control is not None:
            data[0x100:0x104] = (0x0001_0001 | 0x148 << 20).to_bytes(4, "little")
            data[0x148:0x14C] = (0x0001_000D).to_bytes(4, "little")
            data[0x14E:0x150] = control.to_bytes(2, "little")
        self.file(f"/sys/bus/pci/devices/{address}/config", bytes(data))

    def nic(
        self,
        name: str,
        *,
        device: str | None = None,
        driver: str | None = None,
        speed: int | None = None,
        mtu: int = 1500,
        state: str = "up",
        address: str | None = None,
        is_default: bool = False,
        devtype: str | None = None,
        is_pair: bool = False,
        kind: int = 1,
        counters: dict[str, int] | None = None,
    ) -> None:
        """`address`: `10.0.0.5/24`; `device`: a folder of sysfs."""
        self.numbers += 1
        folder = f"{device or '/sys/devices/virtual'}/net/{name}"
        number = self.numbers + 1
        statistics = {"rx_packets": 10**9, "tx_packets": 10**9, "rx_dropped": 12, "tx_dropped": 0}
        texts: dict[str, object] = {
            "type": kind,
            "ifindex": number,
            "iflink": number + 100 if is_pair else number,
            "mtu": mtu,
            "operstate": state,
            "uevent": (f"DEVTYPE={devtype}\n" if devtype else "") + f"INTERFACE={name}",
            **{
                f"statistics/{key}": count for key, count in (statistics | (counters or {})).items()
            },
        }
        if speed is not None:
            texts["speed"] = speed
        self.files(folder, texts)
        if device is not None:
            self.link(f"{folder}/device", device)
            if driver is not None and not (self.root / device.lstrip("/") / "driver").exists():
                self.link(f"{device}/driver", f"/sys/bus/pci/drivers/{driver}")
        self.link(f"/sys/class/net/{name}", folder)
        if address is not None:
            self._route(name, address, is_default=is_default)

    def _route(self, name: str, address: str, *, is_default: bool) -> None:

        interface = ipaddress.IPv4Interface(address)
        network = interface.network
        if is_default:
            gateway = _hexadecimal(network.network_address + 1)
            self.routes.append(f"{name}\t00000000\t{gateway}\t0003\t0\t0\t0\t00000000\t0\t0\t0")
        to, mask = _hexadecimal(network.network_address), _hexadecimal(network.netmask)
        self.routes.append(f"{name}\t{to}\t00000000\t0001\t0\t0\t0\t{mask}\t0\t0\t0")
        self.own_addresses.append(str(interface.ip))
        head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT"
        self.file("/proc/net/route", "\n".join([head, *self.routes]) + "\n")
        trie = "".join(f"     |-- {ip}\n        /32 host LOCAL\n" for ip in self.own_addresses)
        self.file("/proc/net/fib_trie", f"Main:\n  +-- 0.0.0.0/0 3 0 5\n{trie}")

    def hca(
        self,
        name: str,
        device: str,
        *,
        rate: str = "400 Gb/sec (4X NDR)",
        layer: str = "InfiniBand",
        state: str = "4: ACTIVE",
        physical: str = "5: LinkUp",
        board: str = "MT_0000000838",
        driver: str = "mlx5_core",
        gids: Iterable[tuple[int, str, str | None]] = (),
        counters: dict[str, int] | None = None,
        has_file: bool = True,
    ) -> None:
        """`gids`: index, GID, and its type, None where the kernel refuses to say."""
        folder = f"{device}/infiniband/{name}"
        port = f"{folder}/ports/1"
        self.files(folder, {"fw_ver": "28.39.1002", "board_id": board})
        self.files(
            port, {"state": state, "phys_state": physical, "rate": rate, "link_layer": layer}
        )
        for each in ("symbol_error", "link_downed", "port_rcv_errors"):
            self.file(f"{port}/counters/{each}", f"{(counters or {}).get(each, 0)}\n")
        for each in ("out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "np_cnp_sent"):
            self.file(f"{port}/hw_counters/{each}", f"{(counters or {}).get(each, 0)}\n")
        table = {index: (gid, kind) for index, gid, kind in gids} or {0: (IB_GID, "IB/RoCE v1")}
        for index in range(max(table) + 3):
            gid, kind = table.get(index, (NO_GID, None))
            self.file(f"{port}/gids/{index}", f"{gid}\n")
            if kind is not None:
                self.file(f"{port}/gid_attrs/types/{index}", f"{kind}\n")
        self.link(f"{folder}/device", device)
        self.link(f"/sys/class/infiniband/{name}", folder)
        if not (self.root / device.lstrip("/") / "driver").exists():
            self.link(f"{device}/driver", f"/sys/bus/pci/drivers/{driver}")
        if has_file:
            self.file(f"/dev/infiniband/uverbs{len(self.hca_files())}", "")

    def hca_files(self) -> list[Path]:
        return list((self.root / "dev/infiniband").glob("uverbs*"))

    def gpu(
        self, path: Iterable[str], minor: int, *, is_usable: bool = True, **more: object
    ) -> None:
        parts = list(path)
        self.pci(parts, H100, kind="0x030200", **more)  # type: ignore[arg-type]
        self.file(
            f"/proc/driver/nvidia/gpus/{parts[-1]}/information",
            INFORMATION.format(model="NVIDIA H100 80GB HBM3", minor=minor),
        )
        if is_usable:
            self.file(f"/dev/nvidia{minor}", "")

    def driver(self, text: str = OPEN_DRIVER, *, peermem: bool = True) -> None:
        self.file("/proc/driver/nvidia/version", text)
        if peermem:
            self.file("/sys/module/nvidia_peermem/version", "570.124.06\n")


IB_GID = "fe80:0000:0000:0000:5c25:7303:0001:2345"
NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
LINK_GID = "fe80:0000:0000:0000:bace:f6ff:fe01:2345"


def _hexadecimal(address: object) -> str:
    """As /proc/net/route has it on a little-endian machine."""

    return socket.inet_aton(str(address))[::-1].hex().upper()


def roce_gids(address: str) -> tuple[tuple[int, str, str], ...]:
    """As mlx5 fills a port's table: link-local and IPv4, each of v1 and v2."""

    digits = socket.inet_aton(address).hex()
    mapped = f"0000:0000:0000:0000:0000:ffff:{digits[:4]}:{digits[4:]}"
    return (
        (0, LINK_GID, "IB/RoCE v1"),
        (1, LINK_GID, "RoCE v2"),
        (2, mapped, "IB/RoCE v1"),
        (3, mapped, "RoCE v2"),
    )


def switch_path(root: int, device: int) -> tuple[str, ...]:
    """Below one PCIe switch: root bus, root port, port up, port down, device."""
    bus = f"0000:{root:02x}"
    return (
        f"pci{bus}",
        f"{bus}:01.0",
        f"0000:{root + 1:02x}:00.0",
        f"0000:{root + 2:02x}:{device:02x}.0",
        f"0000:{root + 3 + device:02x}:00.0",
    )


def dgx(root: Path, pairs: int = 8) -> Machine:
    """A node of 8 GPUs and 8 InfiniBand adapters, a pair to a switch, four switches to a socket."""
    machine = Machine(root)
    machine.base()
    machine.driver()
    for index in range(pairs):
        numa = index * 2 // pairs
        machine.gpu(switch_path(0x10 + 0x10 * index, 0), index, numa=numa)
        device = machine.pci(switch_path(0x10 + 0x10 * index, 1), CX7, numa=numa)
        machine.hca(f"mlx5_{index}", device)
    ethernet = machine.pci(("pci0000:c0", "0000:c0:01.0", "0000:c1:00.0"), ("0x8086", "0x1563"))
    machine.nic(
        "eno1", device=ethernet, driver="ixgbe", speed=10000, address="10.1.0.5/16", is_default=True
    )
    return machine


def roce(root: Path, pairs: int = 2, mtu: int = 9000) -> Machine:
    """A server whose adapters speak RoCE, each with an interface in a subnet of its own."""
    machine = Machine(root)
    machine.base()
    machine.driver()
    for index in range(pairs):
        machine.gpu(switch_path(0x10 + 0x10 * index, 0), index)
        device = machine.pci(switch_path(0x10 + 0x10 * index, 1), CX7, kind="0x020000")
        address = f"10.2.{index}.5"
        machine.hca(f"mlx5_{index}", device, layer="Ethernet", gids=roce_gids(address))
        machine.nic(
            f"ens{index}np0",
            device=device,
            driver="mlx5_core",
            speed=400000,
            mtu=mtu,
            address=f"{address}/24",
        )
    return machine


POD_LIMITS = {
    "cgroup": "0::/\n",
    "memlock": ("8388608", "8388608"),
    "shm": "size=65536k",
}


def vf_pod(root: Path) -> Machine:
    """A pod with one GPU and a virtual function of SR-IOV, beside the cluster's own network."""
    machine = Machine(root)
    machine.base(kernel="5.14.0-427.13.1.el9_4.x86_64", cpus=16, **POD_LIMITS)  # type: ignore[arg-type]
    machine.driver()
    machine.gpu(switch_path(0x10, 0), 0)
    machine.file("/var/run/secrets/kubernetes.io/serviceaccount/namespace", "default")
    physical = machine.pci(switch_path(0x10, 1), CX7, kind="0x020000")
    function = (*switch_path(0x10, 1)[:-1], "0000:14:01.2")
    device = machine.pci(
        function, CX6_VF, kind="0x020000", link=("Unknown", "Unknown"), width=(0, 0)
    )
    machine.link(f"{device}/physfn", physical)
    machine.nic(
        "eth0", speed=10000, mtu=1400, is_pair=True, address="10.128.2.7/23", is_default=True
    )
    machine.nic(
        "net1", device=device, driver="mlx5_core", speed=400000, mtu=9000, address="192.168.5.7/24"
    )
    machine.hca("mlx5_12", device, layer="Ethernet", gids=roce_gids("192.168.5.7"))
    return machine


def veth_pod(root: Path, gpus: int = 2) -> Machine:
    """A pod on an overlay, with GPUs and nothing but a veth."""
    machine = Machine(root)
    machine.base(cpus=32, cgroup="0::/kubepods.slice/pod1\n")
    machine.driver(peermem=False)
    for index in range(gpus):
        machine.gpu(switch_path(0x10 + 0x10 * index, 0), index)
    machine.nic(
        "eth0", speed=10000, mtu=1400, is_pair=True, address="10.128.2.7/23", is_default=True
    )
    return machine


def h200_vm(root: Path) -> Machine:
    """A rented VM of two H200 behind one host bridge, with a virtio NIC: values read there."""
    machine = Machine(root)
    machine.base(kernel="6.18.44", cpus=32, numa="0", is_vm=True, shm="size=268435456k")
    machine.driver(OPEN_DRIVER, peermem=False)
    for minor in range(2):
        machine.gpu(("pci0000:00", f"0000:00:0{6 + minor}.0"), minor, numa=-1)
    _virtio_nic(machine, "eth0", "0x1041")
    return machine


def _virtio_nic(machine: Machine, name: str, device_id: str) -> None:
    path = ("pci0000:00", "0000:00:03.0")
    device = machine.pci(path, ("0x1af4", device_id), kind="0x020000", numa=-1, width=(0, 0))
    virtio = f"{device}/virtio0"
    machine.file(f"{virtio}/vendor", "0x1af4\n")
    machine.link(f"{virtio}/driver", "/sys/bus/virtio/drivers/virtio_net")
    machine.nic(name, device=virtio, speed=-1, address="192.0.2.10/24", is_default=True)


def virtio_vm(root: Path) -> Machine:
    """A VM without GPU: one virtio NIC, whose link the kernel does not know."""
    machine = Machine(root)
    machine.base(cpus=4, numa="0", is_vm=True)
    _virtio_nic(machine, "ens3", "0x1000")
    return machine


def laptop(root: Path) -> Machine:
    """Neither GPU nor RDMA: Wi-Fi, and Docker's bridge."""
    machine = Machine(root)
    machine.base(kernel="6.8.0-45-generic", cpus=8, numa="0", memlock=("8388608", "8388608"))
    wifi = machine.pci(("pci0000:00", "0000:00:14.3"), ("0x8086", "0xa0f0"), kind="0x028000")
    machine.nic(
        "wlp0s20f3", device=wifi, driver="iwlwifi", address="192.168.1.20/24", is_default=True
    )
    machine.nic("docker0", state="down", devtype="bridge", address="172.17.0.1/16")
    return machine
