"""Four pods on a fabric with a fault: who is named? `preflight_fabric.py ZIP FAULT` prints JSON.

Run in namespaces of its own (`unshare -rn`). Faults: `none`; `mtu`: the switch's port of pod 0
carries 1,500 bytes and all interfaces say 9,000; `cut`: pod 2 has no cable.
"""

import json
import subprocess
import sys
from typing import Any

NUM_PODS = 4
PATIENCE_S = 60.0
MTU = 9000
POD = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
from broadgauge.agent.pod import preflight
from broadgauge.agent.pod.facts import read_pod_facts
from broadgauge.agent.pod.preflight_plan import plan_probes
from broadgauge.agent.pod.resolve import ResolvedNetwork
from broadgauge.messages.codec import decode, encode
from broadgauge.messages.preflight import PodAddress

node, address = int(sys.argv[2]), sys.argv[3]
sys.stdin.readline()
network = ResolvedNetwork(name="fabric", interfaces=("net1",), addresses=(address,))
pod = preflight.open_listeners(node, [network], read_pod_facts())
print(json.dumps(encode(pod.addresses)), flush=True)
there = [decode(PodAddress, each) for each in json.loads(sys.stdin.readline())]

async def run():
    async with preflight.answering(pod, "key"):
        results = await preflight.run_probes(plan_probes(there, node), "key")
        print(json.dumps(encode(results)), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)

asyncio.run(run())
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=PATIENCE_S)


def start_pod(archive: str, number: int) -> "subprocess.Popen[str]":
    """A namespace with `net1` on the bridge, whose packets are cut by the sender's own TCP."""
    program = [sys.executable, "-I", "-S", "-c", POD, archive, str(number), f"10.9.0.{number + 1}"]
    return subprocess.Popen(
        ["unshare", "-n", *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def connect(pod: "subprocess.Popen[str]", number: int) -> None:
    ip("link", "add", f"v{number}", "type", "veth", "peer", "name", "net1", "netns", str(pod.pid))
    ip("link", "set", f"v{number}", "mtu", str(MTU), "master", "fabric", "up")
    inside = ("nsenter", f"--net=/proc/{pod.pid}/ns/net", "ip")
    for words in (
        ("address", "add", f"10.9.0.{number + 1}/24", "dev", "net1"),
        ("link", "set", "net1", "mtu", str(MTU), "gso_max_segs", "1", "up"),
        ("link", "set", "lo", "up"),
    ):
        subprocess.run([*inside, *words], check=True, timeout=PATIENCE_S)


def spoil(fault: str) -> None:
    if fault == "mtu":
        ip("link", "set", "v0", "mtu", "1500")
    elif fault == "cut":
        ip("link", "set", "v2", "down")


def tell(pods: "list[subprocess.Popen[str]]", line: str) -> None:
    for pod in pods:
        assert pod.stdin is not None
        pod.stdin.write(f"{line}\n")
        pod.stdin.flush()


def heard(pods: "list[subprocess.Popen[str]]") -> list[Any]:
    rows: list[Any] = []
    for pod in pods:
        assert pod.stdout is not None
        rows += json.loads(pod.stdout.readline())
    return rows


def main() -> None:
    archive, fault = sys.argv[1:]
    ip("link", "add", "fabric", "type", "bridge")
    ip("link", "set", "fabric", "up")
    pods = [start_pod(archive, number) for number in range(NUM_PODS)]
    try:
        for number, pod in enumerate(pods):
            connect(pod, number)
        spoil(fault)
        tell(pods, "listen")
        addresses = heard(pods)
        tell(pods, json.dumps(addresses))
        results = heard(pods)
        tell(pods, "all have ended")
        for pod in pods:
            pod.wait(PATIENCE_S)
    finally:
        for pod in pods:
            pod.kill()
            pod.wait()
    sys.stdout.write(json.dumps({"addresses": addresses, "results": results}))


if __name__ == "__main__":
    main()
