"""A leader and four agents on a fabric with a fault: what does its preflight find?

`fabric.py FAULT FOLDER` prints it as JSON.

Run in namespaces of its own (`unshare -rn`). Each agent is in one with `ctl0`, by which it hears
the leader, and `net1` on the fabric. Faults: `none`; `mtu`: the switch's port of node 0 carries
1,500 bytes where all interfaces say 9,000; `pair`: node 1 has no route to node 2; `machine`: node 3
has another torch, and its clock is an hour ahead.
"""

import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.e2e.driving import wait_until
from tests.leader.allocations import HANG_S, ROOT, job

from broadgauge.agent.on_host import AgentStart
from broadgauge.leader.main import LeaderStart
from broadgauge.messages.leader import TakeJobs
from broadgauge.messages.proof import new_token
from broadgauge.messages.unix_sockets import short_path
from broadgauge.platforms.led.leader_link import ByteStream, LeaderLink

NUM_NODES = 4
MTU = 9000
LIBFAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
TORCH = "9.9.9"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=HANG_S)


def bridge(name: str, *address: str) -> None:
    ip("link", "add", name, "type", "bridge")
    if address:
        ip("address", "add", *address, "dev", name)
    ip("link", "set", name, "up")


def plug(pid: int, number: int, bridged: str) -> None:
    """An interface of that process's namespace, whose packets are cut by the sender's own TCP."""
    is_control = bridged == "control"
    port, inside = (f"ctl-{number}", "ctl0") if is_control else (f"net-{number}", "net1")
    subnet, mtu = ("10.8.0", 1500) if is_control else ("10.9.0", MTU)
    ip("link", "add", port, "type", "veth", "peer", "name", inside, "netns", str(pid))
    ip("link", "set", port, "mtu", str(mtu), "master", bridged, "up")
    for words in (
        ("address", "add", f"{subnet}.{number + 1}/24", "dev", inside),
        ("link", "set", inside, "mtu", str(mtu), "gso_max_segs", "1", "up"),
    ):
        within(pid, *words)


def within(pid: int, *words: str) -> None:
    enter = ["nsenter", f"--net=/proc/{pid}/ns/net", "ip"]
    subprocess.run([*enter, *words], check=True, timeout=HANG_S)


def network_of(process: object) -> Path:
    return Path(f"/proc/{process}/ns/net").readlink()


def start(module: str, *, prefix: tuple[str, ...] = (), **variables: str) -> Any:
    path = variables.pop("FIRST_PATH", "")
    environment = {**os.environ, **variables, "PYTHONPATH": f"{path}:{ROOT}/src:{ROOT}"}
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def tell(process: Any, told: Any) -> None:
    process.stdin.write(json.dumps(asdict(told)) + "\n")
    process.stdin.flush()


def variables_of(node: int, fault: str, folder: Path) -> dict[str, str]:
    if fault != "machine" or node != NUM_NODES - 1:
        return {}
    info = folder / "packages" / f"torch-{TORCH}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {TORCH}\n")
    late = {"LD_PRELOAD": LIBFAKETIME, "FAKETIME": "+1h", "DONT_FAKE_MONOTONIC": "1"}
    return late | {"FIRST_PATH": str(info.parent)}


def spoil(fault: str, pids: list[int]) -> None:
    if fault == "mtu":
        ip("link", "set", "net-0", "mtu", "1500")
    elif fault == "pair":
        within(pids[1], "route", "add", "blackhole", "10.9.0.3/32")


def start_leader(folder: Path, token: str) -> tuple[Any, int]:
    (folder / "leader").mkdir(mode=0o700)
    leader = start("broadgauge.leader.main")
    told = LeaderStart(
        folder=str(folder / "leader"),
        address="10.8.0.254",
        token=token,
        version="test",
        keep_s=60.0,
    )
    tell(leader, told)
    return leader, int(json.loads(leader.stdout.readline())["port"])


def start_agent(folder: Path, token: str, port: int, node: int, fault: str) -> Any:
    agent = start(
        "broadgauge.agent.on_host", prefix=("unshare", "-n"), **variables_of(node, fault, folder)
    )
    wait_until(lambda: network_of(agent.pid) != network_of("self"))
    plug(agent.pid, node, "control")
    plug(agent.pid, node, "fabric")
    own = folder / f"agent{node}"
    own.mkdir()
    told = AgentStart(
        number=node,
        leader_address="10.8.0.254",
        leader_port=port,
        token=token,
        version="test",
        folder=str(own),
        supervisor=("false",),
        logs=str(own / "logs"),
        working_folder=str(own),
        secrets={},
    )
    tell(agent, told)
    return agent


def preflight(folder: Path) -> dict[str, Any]:
    joined = socket.socket(socket.AF_UNIX)
    with short_path(folder / "leader" / "socket") as there:
        joined.connect(there)
    fd = joined.detach()
    link = LeaderLink(ByteStream(reading=fd, writing=fd), -1)
    planned = job("b0.l0", ["t0"], NUM_NODES, interfaces=("net1",), network_name="fabric")
    link.send(TakeJobs(generation=0, jobs=(planned,), preflight="only"))
    spooled = link.receive(HANG_S)
    assert spooled is not None
    return spooled.event


def main() -> None:
    fault, folder, token = sys.argv[1], Path(sys.argv[2]), new_token()
    bridge("control", "10.8.0.254/24")
    bridge("fabric")
    leader, port = start_leader(folder, token)
    agents = []
    try:
        for node in range(NUM_NODES):
            agents.append(start_agent(folder, token, port, node, fault))
        for agent in agents:
            agent.stdout.readline()  # it has proved that it knows the token
        spoil(fault, [agent.pid for agent in agents])
        sys.stdout.write(json.dumps(preflight(folder)))
    finally:
        for process in (leader, *agents):
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
