"""What do the namespace tests do inside a cluster? Run as `inside.py CASE JSON`, by conftest.py.

It takes the supervisor's place: enters the namespaces, forks PID 1, runs one case there and
prints its answer as one line of JSON.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tests.platforms.emulated.shaper_judge import judge

from broadgauge.agent.emulated.ceiling import measure_stream, send_exactly
from broadgauge.agent.emulated.errors import EmulationError
from broadgauge.agent.emulated.namespaces import (
    drop_privileges_for_rank,
    enter_cluster_namespaces,
    prepare_cluster_root,
)
from broadgauge.agent.emulated.nodes import EmulatedCluster, Node, build_cluster
from broadgauge.agent.emulated.round_trip import measure_round_trip_time_s
from broadgauge.agent.emulated.shaping import LinkPlan, SlowWay

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


def processor_ticks() -> tuple[int, int]:
    """Busy and all ticks of this machine's processors. Source: /proc/stat in proc(5)."""
    ticks = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)


def until_two_agree(measure: Callable[[int], float], least: float) -> list[float]:
    """Two or three attempts: one that is good by luck proves nothing, and one that the host
    disturbed disproves nothing. `measure` is given the attempt's number."""
    seen: list[float] = []
    while sum(each >= least for each in seen) < 2 and sum(each < least for each in seen) < 2:
        seen.append(measure(len(seen)))
    return seen


def fidelity(least: float, points: list[tuple[dict[str, Any], float]], **options: Any) -> Any:
    """Each point's delivered over expected payload rates, until two attempts agree on `least`."""
    cluster = build(**options)
    answer = []
    for link, expected_gbps in points:
        cluster.shape(plan_of(**link))
        drops, (busy, ticks) = cluster.nodes[1].read_counters().rx_drops, processor_ticks()

        def measure(_: int, expected: float = expected_gbps) -> float:
            return measure_stream(*cluster.nodes, duration_s=0.6).payload_gbps / expected

        ratios = until_two_agree(measure, least)
        busy_after, ticks_after = processor_ticks()
        drops = cluster.nodes[1].read_counters().rx_drops - drops
        ceiling_gbps = None
        if sorted(ratios)[-2] < least:
            cluster.shape(LinkPlan(rate_gbps=None, mtu=link["mtu"]))
            ceiling_gbps = measure_stream(*cluster.nodes).payload_gbps
        answer.append(
            {
                "link": link,
                "ratios": ratios,
                "busy_ratio": (busy_after - busy) / (ticks_after - ticks),
                "drops": drops,
                "ceiling_gbps": ceiling_gbps,
            }
        )
    return answer


def counters(rate_gbps: float | None, mtu: int, payload_bytes: int, **options: Any) -> Any:
    cluster = build(rate_gbps, mtu, **options)
    sender, receiver = cluster.nodes
    arrived = send_exactly(sender, receiver, payload_bytes).payload_bytes
    return {
        "arrived": arrived,
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
        result = send_exactly(sender, receiver, payload_bytes)
        answer.append(
            {
                "gbps": result.payload_gbps,
                "at_start": at_start,
                "at_end": asdict(sender.read_counters()),
            }
        )
    return answer


def living_connection(rates_gbps: list[float], payload_bytes: int) -> Any:
    """Reshape under one TCP connection that stays open; gives each part's rate."""
    cluster = build(rates_gbps[0])
    sender, receiver = cluster.nodes
    result_in, result_out = os.pipe()
    ready_in, ready_out = os.pipe()
    go_in, go_out = os.pipe()
    if os.fork() == 0:
        receiver.enter()
        server = socket.create_server((receiver.address, 5001))
        os.write(ready_out, b"x")
        connection, _ = server.accept()
        times = []
        for _ in rates_gbps:
            left = payload_bytes - len(connection.recv(1))
            begin = time.monotonic()
            while left:
                left -= len(connection.recv(min(left, 1 << 18)))
            times.append(time.monotonic() - begin)
            connection.send(b"x")
        os.write(result_out, json.dumps(times).encode())
        os._exit(0)
    os.read(ready_in, 1)
    if os.fork() == 0:
        sender.enter()
        connection = socket.create_connection((receiver.address, 5001))
        for _ in rates_gbps:
            os.read(go_in, 1)
            connection.sendall(bytes(payload_bytes))
            connection.recv(1)
            os.write(ready_out, b"x")
        os._exit(0)
    for rate_gbps in rates_gbps:
        cluster.shape(LinkPlan(rate_gbps=rate_gbps, mtu=1500))
        os.write(go_out, b"x")
        os.read(ready_in, 1)
    times = json.loads(os.read(result_in, 4096))
    return [8e-9 * payload_bytes / seconds for seconds in times]


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
    """How many segments came out of turn at each of two nodes that exchange messages of 64 KiB?"""
    cores = sorted(os.sched_getaffinity(0))
    cluster = build(1.0, cores_per_node=[(cores[0],), (cores[-1],)])
    first, second = cluster.nodes
    with ThreadPoolExecutor(2) as threads:
        ends = [
            threads.submit(run_rank, node, BOTH_WAYS, way, first.address, str(num_messages))
            for node, way in ((first, "listen"), (second, "connect"))
        ]
        return [int(end.result()) for end in ends]


def plan_of(slow_ways: list[tuple[int, int, float]] | None = None, **link: Any) -> LinkPlan:
    """A link plan from what JSON can say."""
    ways = tuple(SlowWay(nodes=(a, b), rate_ratio=ratio) for a, b, ratio in slow_ways or [])
    return LinkPlan(**{"rate_gbps": None, "mtu": 1500} | link, slow_ways=ways)


def pairs(
    num_nodes: int,
    least: float,
    plans: list[tuple[dict[str, Any], dict[str, float]]],
    **options: Any,
) -> Any:
    """Under each link plan in turn, what a stream from node to node delivers over what is expected
    of it, by pair: attempts until two agree on `least`."""
    cluster = build_cluster(num_nodes, LinkPlan(rate_gbps=None, mtu=1500), **options)
    answer = []
    for link, expected_gbps in plans:
        cluster.shape(plan_of(**link))
        ratios = {}
        for pair, expected in expected_gbps.items():
            nodes = [cluster.nodes[int(number)] for number in pair]

            def measure(_: int, nodes: Any = nodes, expected: float = expected) -> float:
                stream = measure_stream(*nodes, duration_s=0.25, warm_up_s=0.1)
                return stream.payload_gbps / expected

            ratios[pair] = until_two_agree(measure, least)
        answer.append(ratios)
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
    try:
        cluster.shape(plan_of(rate_gbps=rate_gbps, delay_s=delay_s))
    except EmulationError as error:
        return {"refused": (error.step, error.error_number, error.hint)}
    round_trips_s.append(measure_round_trip_time_s(sender, receiver))
    answer["delayed"] = stream(2.0)
    cluster.shape(plan_of(rate_gbps=rate_gbps, delay_s=delay_s, jitter_s=jitter_s))
    round_trips_s.append(measure_round_trip_time_s(sender, receiver))
    answer["jittered"] = stream(2.0)
    cluster.shape(plan_of(rate_gbps=rate_gbps, loss_ratio=loss_ratio))
    answer["lost"] = stream(2.0)
    return answer | {"round_trips_s": round_trips_s}


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
        "round_trip_time_s": measure_round_trip_time_s(*cluster.nodes),
        "num_streams": several.num_streams,
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
        fidelity,
        counters,
        reshape,
        living_connection,
        late_packets,
        pairs,
        impaired,
        tunnels,
        ranks,
        hardware,
        ceiling,
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
