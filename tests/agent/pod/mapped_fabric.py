"""A master and seven workers on one fabric, before the address map, after it, and after it again.

Run in namespaces of its own (`unshare -rn`): each pod is a network namespace with a veth `net1` on
a bridge, and starts with an address that the fabric does not know. `mapped_fabric.py ZIP FOLDER`
prints JSON: who reaches whom, and what the init container printed.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NUM_PODS = 8
PORT = 5000
PATIENCE_S = 20.0
SERVER = f"""
import socket
with socket.create_server(("", {PORT}), backlog=64) as server:
    print("ready", flush=True)
    while True:
        server.accept()[0].close()
"""
ASKER = f"""
import json, socket, sys
found = []
for address in sys.argv[1:]:
    try:
        socket.create_connection((address, {PORT}), timeout=1).close()
    except OSError:
        continue
    found.append(address)
print(json.dumps(found))
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=PATIENCE_S)


def in_pod(pid: int, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["nsenter", f"--net=/proc/{pid}/ns/net", *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environ,
    )


def start_pod(number: int) -> "subprocess.Popen[str]":
    pod = subprocess.Popen(
        ["unshare", "-n", sys.executable, "-I", "-S", "-c", SERVER],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert pod.stdout is not None
    pod.stdout.readline()
    ip("link", "add", f"v{number}", "type", "veth", "peer", "name", "net1", "netns", str(pod.pid))
    ip("link", "set", f"v{number}", "master", "fabric", "up")
    in_pod(pod.pid, "ip", "address", "add", f"192.168.7.{number + 1}/24", "dev", "net1")
    in_pod(pod.pid, "ip", "link", "set", "net1", "up")
    in_pod(pod.pid, "ip", "link", "set", "lo", "up")
    return pod


def mapped(number: int) -> str:
    """The master's NIC is in another subnet than the workers'."""
    return "10.249.65.4" if number == 0 else f"10.249.66.{4 + number}"


def reached(pods: "list[subprocess.Popen[str]]") -> list[list[str]]:
    addresses = [mapped(number) for number in range(NUM_PODS)]
    asked = [in_pod(pod.pid, sys.executable, "-I", "-S", "-c", ASKER, *addresses) for pod in pods]
    return [json.loads(each.stdout) for each in asked]


def remap(
    pods: "list[subprocess.Popen[str]]", archive: str, names: Path
) -> list[tuple[int, str, str]]:
    ended = [
        in_pod(
            pod.pid,
            *(sys.executable, "-I", "-S", archive, "addresses"),
            BROADGAUGE_ADDRESS_MAP=str(names),
            NODE_HOSTNAME=f"node-{number}",
        )
        for number, pod in enumerate(pods)
    ]
    return [(each.returncode, each.stdout, each.stderr) for each in ended]


def state(pod: "subprocess.Popen[str]") -> list[str]:
    """Addresses and routes, as `ip` shows them."""
    asked = (("-4", "-o", "address", "show", "net1"), ("route", "show", "dev", "net1"))
    return [in_pod(pod.pid, "ip", *words).stdout for words in asked]


def main() -> None:
    archive, folder = sys.argv[1], Path(sys.argv[2])
    ip("link", "add", "fabric", "type", "bridge")
    ip("link", "set", "fabric", "up")
    pods = [start_pod(number) for number in range(NUM_PODS)]
    names = folder / "nodename_ip_mapping.yaml"
    lines = [f"node-{number}:ens13:net1:{mapped(number)}\n" for number in range(NUM_PODS)]
    names.write_text("".join(lines))
    told: dict[str, Any] = {}
    try:
        told["before"] = reached(pods)
        begin_s = time.monotonic()
        told["first"] = remap(pods, archive, names)
        told["took_s"] = time.monotonic() - begin_s
        told["after"] = reached(pods)
        told["state"] = state(pods[0])
        told["again"] = remap(pods, archive, names)
        told["state_again"] = state(pods[0])
        names.write_text("".join(lines[:4]).replace("66.5", "66.55"))
        told["changed"] = remap(pods[:2], archive, names)
        told["state_changed"] = state(pods[0])
        names.write_text("node-0:ens13:net7:10.0.0.1\n")
        told["absent"] = remap(pods[:1], archive, names)
    finally:
        for pod in pods:
            pod.kill()
            pod.wait()
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
