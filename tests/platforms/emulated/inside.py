"""What do the namespace tests do inside a cluster? Run as `inside.py CASE JSON`, by conftest.py.

It takes the supervisor's place: enters the namespaces, forks PID 1, runs one case there and
prints its answer as one line of JSON.
"""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tests.platforms.emulated.shaper_judge import judge, link_of, readers_by_way

from broadgauge.agent.emulated.ceiling import measure_stream, send_exactly
from broadgauge.agent.emulated.errors import EmulationError
from broadgauge.agent.emulated.namespaces import (
    drop_privileges_for_rank,
    enter_cluster_namespaces,
    prepare_cluster_root,
)
from broadgauge.agent.emulated.nodes import EmulatedCluster, Node, build_cluster
from broadgauge.agent.emulated.round_trip import measure_round_trip_time_s
from broadgauge.agent.emulated.shaping import LinkPlan

REAL_IDS = (os.getuid(), os.getgid())
RANK = """
import json, os, socket
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
print(json.dumps({
    "uid": os.getuid(), "gid": os.getgid(), "hostname": socket.gethostname(),
    "capabilities": [status[k].strip() for k in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")],
    "no_new_privs": status["NoNewPrivs"].strip(), "nics": sorted(os.listdir("/sys/class/net")),
    "resolved": [socket.gethostbyname(n) for n in ("node0", "node1", "localhost")],
    "resolv_conf": open("/etc/resolv.conf").read() if os.path.exists("/etc/resolv.conf") else "",
    "shm": sorted(os.listdir("/dev/shm")), "cwd": os.getcwd(), "pid": os.getpid(),
    "routes": open("/proc/net/route").read().splitlines()[1:],
    "ipv6": open("/proc/net/if_inet6").read() if os.path.exists("/proc/net/if_inet6") else "",
    "affinity": sorted(os.sched_getaffinity(0)),
    "is_batch": os.sched_getscheduler(0) == os.SCHED_BATCH,
    "rehash": open(p).read().strip() if os.path.exists(p := "/proc/sys/net/core/txrehash") else "",
}))
"""
HARDWARE = """
import json, os
from pathlib import Path
from broadgauge.agent.hardware.reading import read_machine_hardware
from broadgauge.messages.codec import encode
print(json.dumps(encode(read_machine_hardware(Path("/"), os.environ))))
"""
TAMPER = """
from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError
import ctypes, os, sys
with IPRoute() as netlink:
    try:
        netlink.tc("del", "htb", 2, 0x10000, root=True)
    except NetlinkError as error:
        print(error.code)
"""


def tell(answer: Any) -> None:
    """Print one line of JSON."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def run_rank(node: Node, program: str, *arguments: str) -> str:
    """Run a Python program as a rank of this node would run."""

    def preexec() -> None:
        node.enter()
        drop_privileges_for_rank(*REAL_IDS)

    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        preexec_fn=preexec,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout


def build(rate_gbps: float | None = None, mtu: int = 1500, **options: Any) -> EmulatedCluster:
    return build_cluster(2, LinkPlan(rate_gbps=rate_gbps, mtu=mtu), **options)


def counters(rate_gbps: float | None, mtu: int, payload_bytes: int, **options: Any) -> Any:
    """The receiver's before the sender's and after: what has arrived was sent before."""
    cluster = build(rate_gbps, mtu, **options)
    sender, receiver = cluster.nodes
    return {
        "arrived": send_exactly(sender, receiver, payload_bytes).payload_bytes,
        "receiver_before": asdict(receiver.read_counters()),
        "sender": asdict(sender.read_counters()),
        "receiver": asdict(receiver.read_counters()),
    }


def reshape(plans: list[tuple[float | None, int]], payload_bytes: int) -> Any:
    """Send the same bytes over one living link under each plan in turn."""
    cluster = build(*plans[0])
    sender, receiver = cluster.nodes
    answer = []
    for rate_gbps, mtu in plans:
        cluster.shape(LinkPlan(rate_gbps=rate_gbps, mtu=mtu))
        at_start = asdict(sender.read_counters())
        begin_s = time.monotonic()
        result = send_exactly(sender, receiver, payload_bytes)
        answer.append(
            {
                "seconds": time.monotonic() - begin_s,
                "arrived": result.payload_bytes,
                "at_start": at_start,
                "at_end": asdict(sender.read_counters()),
            }
        )
    return answer


def living_connection(rates_gbps: list[float], payload_bytes: int) -> Any:
    """Reshape under one TCP connection that stays open; gives each part's time, from before its
    first byte is sent till its last one is confirmed."""
    cluster = build(rates_gbps[0])
    sender, receiver = cluster.nodes
    ready_in, ready_out = os.pipe()
    go_in, go_out = os.pipe()
    if os.fork() == 0:
        receiver.enter()
        server = socket.create_server((receiver.address, 5001))
        os.write(ready_out, struct.pack("=d", 0.0))
        connection, _ = server.accept()
        for _ in rates_gbps:
            left = payload_bytes
            while left:
                left -= len(connection.recv(min(left, 1 << 18)))
            connection.send(b"x")
        os._exit(0)
    os.read(ready_in, 8)
    if os.fork() == 0:
        sender.enter()
        connection = socket.create_connection((receiver.address, 5001))
        for _ in rates_gbps:
            os.read(go_in, 1)
            begin_s = time.monotonic()
            connection.sendall(bytes(payload_bytes))
            connection.recv(1)
            os.write(ready_out, struct.pack("=d", time.monotonic() - begin_s))
        os._exit(0)
    parts_s = []
    for rate_gbps in rates_gbps:
        cluster.shape(LinkPlan(rate_gbps=rate_gbps, mtu=1500))
        os.write(go_out, b"x")
        parts_s += struct.unpack("=d", os.read(ready_in, 8))
    return parts_s


BOTH_WAYS = """
import socket, sys, threading
if sys.argv[1] == "listen":
    connection, _ = socket.create_server((sys.argv[2], 5002)).accept()
else:
    while True:
        try:
            connection = socket.create_connection((sys.argv[2], 5002))
            break
        except ConnectionRefusedError:
            pass
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
size = 1 << 16
def send():
    connection.sendall(bytes(48))
    connection.sendall(bytes(size))
for _ in range(int(sys.argv[3])):
    sending = threading.Thread(target=send)
    sending.start()
    left = 48 + size
    while left:
        left -= len(connection.recv(min(left, 1 << 16)))
    sending.join()
names, values = [
    line.split()
    for line in open("/proc/self/net/netstat").read().splitlines()
    if line.startswith("TcpExt")
]
print(dict(zip(names, values))["TCPOFOQueue"])
"""


def late_packets(num_messages: int) -> Any:
    """How many segments came out of turn at each of two nodes that exchange messages of 64 KiB, and
    how many packets of anyone the cores dropped meanwhile?"""
    cores = sorted(os.sched_getaffinity(0))
    cluster = build(1.0, cores_per_node=[(cores[0],), (cores[-1],)])
    first, second = cluster.nodes
    before = dropped_by_cores()
    with ThreadPoolExecutor(2) as threads:
        ends = [
            threads.submit(run_rank, node, BOTH_WAYS, way, first.address, str(num_messages))
            for node, way in ((first, "listen"), (second, "connect"))
        ]
        late = [int(end.result()) for end in ends]
    return {"late": late, "dropped": dropped_by_cores() - before}


def dropped_by_cores() -> int:
    """How many packets found a core's backlog full? All network namespaces share it.

    Source: the second column of /proc/net/softnet_stat (net/core/net-procfs.c).
    """
    lines = Path("/proc/net/softnet_stat").read_text().splitlines()
    return sum(int(line.split()[1], 16) for line in lines)


def bytes_by_way(
    num_nodes: int,
    plans: list[dict[str, Any]],
    pairs: list[tuple[int, int]],
    payload_bytes: int,
    **options: Any,
) -> Any:
    """Under each plan, what each of a sender's classes carried while one pair sent: by the peer
    that it is for, or `others`."""
    cluster = build_cluster(num_nodes, LinkPlan(rate_gbps=None, mtu=1500), **options)
    answer = []
    for link in plans:
        cluster.shape(link_of(**link))
        by_pair = []
        for pair in pairs:
            sender, receiver = (cluster.nodes[number] for number in pair)
            readers = readers_by_way(sender)
            before = {way: reader.read().num_bytes for way, reader in readers.items()}
            send_exactly(sender, receiver, payload_bytes)
            after = {way: reader.read().num_bytes for way, reader in readers.items()}
            by_pair.append({way: after[way] - before[way] for way in readers})
        answer.append(by_pair)
    return answer


LARGEST = """
import errno, socket, sys
other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
other.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO: never fragmented
largest = 0
for size in range(1400, 9001):
    try:
        other.sendto(bytes(size), (sys.argv[1], 9))
        largest = size
    except ConnectionRefusedError:
        largest = size
    except OSError as error:
        assert error.errno == errno.EMSGSIZE, error
        break
print(largest)
"""
MTUS = """
import json, os, socket
names = sorted(os.listdir("/sys/class/net"))
mtus = [int(open(f"/sys/class/net/{name}/mtu").read()) for name in names if "vxlan" in name]
print(json.dumps({"nics": names, "mtus": mtus, "resolved": socket.gethostbyname("node0")}))
"""


def tunnels(mtu: int, reshaped_mtu: int) -> Any:
    """What ranks of nodes with two NICs and a tunnel on each see, before and after a reshape."""
    cluster = build(None, mtu, nics_per_node=2, has_overlay=True)
    first, second = cluster.nodes
    answer = json.loads(run_rank(first, MTUS))
    largest = [int(run_rank(first, LARGEST, second.address))]
    cluster.shape(LinkPlan(rate_gbps=1.0, mtu=reshaped_mtu))
    largest.append(int(run_rank(first, LARGEST, second.address)))
    return answer | {
        "addresses": [[nic.address for nic in node.nics] for node in cluster.nodes],
        "reshaped_mtus": json.loads(run_rank(first, MTUS))["mtus"],
        "largest_datagrams": largest,
    }


def impaired(delay_s: float, jitter_s: float, loss_ratio: float) -> Any:
    """What netem does to round trips and streams; or which step the kernel refused, and how."""
    rate_gbps = 0.05
    cluster = build(rate_gbps)
    sender, receiver = cluster.nodes

    def stream(seconds: float) -> dict[str, float]:
        at_start = sender.read_counters()
        carried = measure_stream(sender, receiver, duration_s=seconds, warm_up_s=seconds / 2)
        at_end = sender.read_counters()
        return {
            "ratio": carried.payload_gbps / (rate_gbps * 1448 / 1514),
            "packets": at_end.tx_packets - at_start.tx_packets,
            "drops": at_end.tx_drops - at_start.tx_drops,
            "retransmits": at_end.tcp_retransmits - at_start.tcp_retransmits,
        }

    answer: dict[str, Any] = {"plain": stream(1.0)}
    round_trips_s = [measure_round_trip_time_s(sender, receiver)]
    cluster.shape(link_of(rate_gbps=rate_gbps, delay_s=delay_s))
    round_trips_s.append(measure_round_trip_time_s(sender, receiver))
    answer["delayed"] = stream(2.0)
    cluster.shape(link_of(rate_gbps=rate_gbps, delay_s=delay_s, jitter_s=jitter_s))
    round_trips_s.append(measure_round_trip_time_s(sender, receiver))
    answer["jittered"] = stream(2.0)
    cluster.shape(link_of(rate_gbps=rate_gbps, loss_ratio=loss_ratio))
    answer["lost"] = stream(2.0)
    return answer | {"round_trips_s": round_trips_s}


def delayed(delay_s: float, payload_bytes: int) -> Any:
    """How long a stream takes over a link with a delay, and what arrives; or what was refused."""
    cluster = build(1.0)
    try:
        cluster.shape(link_of(rate_gbps=1.0, delay_s=delay_s))
    except EmulationError as error:
        return {"refused": (error.step, error.error_number, error.hint)}
    begin_s = time.monotonic()
    arrived = send_exactly(*cluster.nodes, payload_bytes).payload_bytes
    return {"seconds": time.monotonic() - begin_s, "arrived": arrived}


def ranks(nics_per_node: int) -> Any:
    cluster = build(1.0, nics_per_node=nics_per_node, cores_per_node=[(0,), (0,)])
    run_rank(cluster.nodes[0], "open('/dev/shm/only-here', 'w')")
    return {
        "ids": REAL_IDS,
        "cwd": str(Path.cwd()),
        "seen": [json.loads(run_rank(node, RANK)) for node in cluster.nodes],
        "tampering": run_rank(cluster.nodes[0], TAMPER),
        "warnings": cluster.warnings,
        "addresses": [[nic.address for nic in node.nics] for node in cluster.nodes],
    }


def hardware() -> Any:
    """What is read of a node's hardware inside it, by a rank without power."""
    node = build(1.0).nodes[0]
    return {"address": node.nics[0].address, "facts": json.loads(run_rank(node, HARDWARE))}


def ceiling() -> Any:
    cluster = build()
    several = measure_stream(*cluster.nodes, duration_s=0.3, num_streams=3)
    return {
        "stream": asdict(measure_stream(*cluster.nodes, duration_s=0.3)),
        "num_streams": several.num_streams,
    }


def probed(payload_bytes: int) -> Any:
    """What the probes of a link answer, as far as it does not depend on the machine."""
    cluster = build()
    sent = send_exactly(*cluster.nodes, payload_bytes)
    return {
        "sent": asdict(sent),
        "round_trip_time_s": measure_round_trip_time_s(*cluster.nodes),
    }


def failing_side() -> Any:
    """What is said where a side of a probe fails, and which children are left of it?"""
    cluster = build()
    sender, receiver = cluster.nodes
    elsewhere = replace(receiver, nics=(replace(receiver.nics[0], node_number=9),))
    nowhere = replace(sender, namespaces=replace(sender.namespaces, net=-1))
    said = []
    for pair in ((sender, elsewhere), (nowhere, receiver)):
        for num_streams in (1, 3):
            try:
                measure_stream(*pair, duration_s=0.1, num_streams=num_streams)
            except EmulationError as error:
                said.append(error.detail)
        try:
            measure_round_trip_time_s(*pair)
        except EmulationError as error:
            said.append(error.detail)
    children = Path("/proc/self/task/1/children").read_text().split()
    return {"said": said, "children": children}


def build_time(num_nodes: int) -> Any:
    import pyroute2  # noqa: F401  the import takes as long as the building

    begin = time.monotonic()
    build_cluster(num_nodes, LinkPlan(rate_gbps=10.0, mtu=9000))
    return time.monotonic() - begin


def linger() -> Any:
    """Leave a rank that has its own session, say so and wait to be killed."""
    cluster = build(1.0)
    if os.fork() == 0:
        cluster.nodes[0].enter()
        os.setsid()
        time.sleep(120)
        os._exit(0)
    tell({"namespaces": str(Path("/proc/self/ns/net").readlink())})
    time.sleep(120)
    return None


CASES = {
    case.__name__: case
    for case in (
        counters,
        reshape,
        living_connection,
        late_packets,
        bytes_by_way,
        impaired,
        delayed,
        tunnels,
        ranks,
        hardware,
        ceiling,
        probed,
        failing_side,
        build_time,
        linger,
        judge,
    )
}


def main() -> int:
    enter_cluster_namespaces()
    pid = os.fork()
    if pid != 0:
        tell({"pid": pid})
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    prepare_cluster_root()
    answer = CASES[sys.argv[1]](**json.loads(sys.argv[2]))
    tell(answer)
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(abs(status))
