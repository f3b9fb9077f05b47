"""How the logs of this folder were made: `python record.py OUT LIBRARY [SCENARIO…]`, as root.

On two GPUs, with LIBRARY the libnccl.so.2 of any version; torch's scenarios are asked for by name.

Each scenario is two ranks, in one network or as two emulated nodes with a veth pair between them;
what both print goes into one file, OUT/<version>-<scenario>.log, as a pod's log would have it.
NVLink multicast stays off. Needs pyroute2.
"""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

SUBSYSTEMS = "INIT,BOOTSTRAP,ENV,NET,GRAPH,TUNING,P2P,SHM,NVLS"
LIMIT_S = 25.0
NODES = ("bgdoctor0", "bgdoctor1")
CLONE_NEWNS, CLONE_NEWUTS = 0x00020000, 0x04000000


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What differs from NCCL's defaults."""

    variables: Mapping[str, str] = field(default_factory=dict)
    are_nodes: bool = False
    """Each rank in its own network namespace, with its own host name."""
    devices: Sequence[int] = (0, 1)
    shm_bytes: int | None = None
    """A /dev/shm of its own, so small."""
    worker: str = "nccl_rank.py"


SOCKETS = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
VETH = {"NCCL_SOCKET_IFNAME": "=eth0"}
QUICK = {"NCCL_SOCKET_RETRY_CNT": "3", "NCCL_SOCKET_RETRY_SLEEP_MSEC": "20"}
SCENARIOS = {
    "nvlink": Scenario(),
    "p2p-off": Scenario(variables={"NCCL_P2P_DISABLE": "1"}),
    "sockets-inside": Scenario(variables=SOCKETS),
    "two-nodes": Scenario(variables=VETH, are_nodes=True),
    "two-nodes-more-sockets": Scenario(
        variables={**VETH, "NCCL_SOCKET_NTHREADS": "4", "NCCL_NSOCKS_PERTHREAD": "4"},
        are_nodes=True,
    ),
    "wrong-interface": Scenario(variables={**QUICK, "NCCL_SOCKET_IFNAME": "=lo"}, are_nodes=True),
    "missing-interface": Scenario(variables={"NCCL_SOCKET_IFNAME": "net1"}, are_nodes=True),
    "rdma-asked-not-there": Scenario(variables={**VETH, "NCCL_NET": "IB"}, are_nodes=True),
    "missing-plugin": Scenario(variables={**VETH, "NCCL_NET_PLUGIN": "aws-ofi"}, are_nodes=True),
    "same-gpu": Scenario(devices=(0, 0)),
    "small-shm": Scenario(variables={"NCCL_P2P_DISABLE": "1"}, shm_bytes=2**20),
    "dead-peer": Scenario(variables=VETH, are_nodes=True),
    "torch-groups": Scenario(worker="torch_rank.py"),
    "torch-timeout": Scenario(variables=VETH, are_nodes=True, worker="torch_rank.py"),
    "torch-crash": Scenario(variables=VETH, are_nodes=True, worker="torch_rank.py"),
    "misspelt": Scenario(variables={**VETH, "NCCL_IB_HBA": "mlx5_0"}, are_nodes=True),
}


def make_nodes() -> None:
    """Two network namespaces, a veth pair between them, 192.0.2.1 and 192.0.2.2."""
    from pyroute2 import IPRoute, NetNS, netns

    for name in NODES:
        if name in netns.listnetns():
            netns.remove(name)
        netns.create(name)
    with IPRoute() as outside:
        outside.link("add", ifname="bgd0", kind="veth", peer={"ifname": "bgd1"})
        for number, name in enumerate(NODES):
            [index] = outside.link_lookup(ifname=f"bgd{number}")
            outside.link("set", index=index, net_ns_fd=name)
    for number, name in enumerate(NODES):
        with NetNS(name) as node:
            [index] = node.link_lookup(ifname=f"bgd{number}")
            node.link("set", index=index, ifname="eth0")
            node.addr("add", index=index, address=f"192.0.2.{number + 1}", prefixlen=24)
            node.link("set", index=index, state="up")
            [loopback] = node.link_lookup(ifname="lo")
            node.link("set", index=loopback, state="up")


def enter(scenario: Scenario, rank: int) -> None:
    """Become one node, between fork and exec."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWUTS):
        raise OSError(ctypes.get_errno(), "unshare")
    if libc.mount(b"none", b"/", None, 1 << 18 | 1 << 14, None):
        raise OSError(ctypes.get_errno(), "mount / private")
    name = f"node{rank}" if scenario.are_nodes else "node0"
    libc.sethostname(name.encode(), len(name))
    if scenario.shm_bytes is not None:
        size = f"size={scenario.shm_bytes}".encode()
        if libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, size):
            raise OSError(ctypes.get_errno(), "mount /dev/shm")
    if scenario.are_nodes:
        descriptor = os.open(f"/var/run/netns/{NODES[rank]}", os.O_RDONLY)
        if libc.setns(descriptor, 0):
            raise OSError(ctypes.get_errno(), "setns")


def start(
    rank: int, name: str, library: str, id_file: Path, out: IO[bytes]
) -> "subprocess.Popen[bytes]":
    """One rank of a scenario."""
    scenario = SCENARIOS[name]
    variables = {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": SUBSYSTEMS,
        "NCCL_NVLS_ENABLE": "0",
        "NCCL_LIBRARY": library,
        **({"NCCL_HOSTID": f"node{rank}"} if scenario.are_nodes else {}),
        **scenario.variables,
    }
    worker = Path(__file__).with_name(scenario.worker)
    words = [str(rank), str(scenario.devices[rank]), str(id_file), name]
    return subprocess.Popen(
        [sys.executable, str(worker), *words],
        env={**os.environ, **variables},
        stdout=out,
        stderr=out,
        preexec_fn=lambda: enter(scenario, rank),  # noqa: PLW1509
    )


def run(name: str, library: str, log: Path) -> None:
    """Both ranks, until they end or LIMIT_S have passed; 8 s more once one has failed."""
    id_file = log.with_suffix(".id")
    id_file.unlink(missing_ok=True)
    codes = []
    with log.open("wb") as out:
        ranks = [start(rank, name, library, id_file, out) for rank in range(2)]
        ends_s = time.monotonic() + LIMIT_S
        for rank in ranks:
            try:
                codes.append(rank.wait(max(0.1, ends_s - time.monotonic())))
            except subprocess.TimeoutExpired:
                rank.kill()
                codes.append(rank.wait())
            if codes[-1] != 0:
                ends_s = min(ends_s, time.monotonic() + 8.0)
    id_file.unlink(missing_ok=True)
    print(f"{log.name}: exit codes {codes}, {log.stat().st_size} bytes", flush=True)


def main() -> None:
    folder, library, *names = sys.argv[1:]
    nccl = ctypes.CDLL(library)
    number = ctypes.c_int()
    nccl.ncclGetVersion(ctypes.byref(number))
    version = f"{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}"
    make_nodes()
    of_the_library = [name for name, each in SCENARIOS.items() if each.worker == "nccl_rank.py"]
    for name in names or of_the_library:
        log = Path(folder) / f"{version}-{name}.log"
        run(name, library, log)


if __name__ == "__main__":
    main()
