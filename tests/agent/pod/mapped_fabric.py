"""A master and three workers, two NICs each, on a fabric that drops what comes from any source but
the address that it gave to the NIC. What do they reach before the address map, and after it?

`unshare -rn python -m tests.agent.pod.mapped_fabric ZIP FOLDER PYTHON OTHER_PYTHON` prints JSON. A
pod is a network namespace with `net1` and `net2`, veths on a bridge each; it starts with addresses
of one range, as an IPAM plugin gives them where one template serves all workers.

What the fabric drops goes to a bridge without ports: that needs cls_u32 and act_mirred of the
kernel, and neither nftables nor act_gact.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from broadgauge.messages.asked_network import AskedAttachment, AskedNetwork, network_word

NUM_PODS = 4
NICS = (1, 2)
PORT = 5000
PATIENCE_S = 300.0
"""Against hangs."""
SERVER = f"""
import socket
with socket.create_server(("", {PORT}), backlog=64) as server:
    print("ready", flush=True)
    while True:
        server.accept()[0].close()
"""
ASKER = f"""
import errno, json, socket, sys, threading
how, *addresses = sys.argv[1:]
found = {{}}
def ask(address):
    while True:
        try:
            socket.create_connection((address, {PORT})).close()
        except OSError as error:
            found[address] = errno.errorcode[error.errno]
            if how == "until reached":
                continue
        else:
            found[address] = "reached"
        return
asking = [threading.Thread(target=ask, args=[address]) for address in addresses]
for each in asking:
    each.start()
for each in asking:
    each.join()
print(json.dumps(found))
"""
"""What the kernel says of each: EHOSTUNREACH where no ARP is answered, ETIMEDOUT where it was."""
WITHOUT_CAPABILITIES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")

Pod = subprocess.Popen[str]


def given_by_ipam(number: int, nic: int) -> str:
    return f"192.168.{nic}.{number + 1}"


def mapped(number: int, nic: int) -> str:
    """The master's NICs are in other subnets than the workers'."""
    subnet = 63 + 2 * nic
    return f"10.249.{subnet}.4" if number == 0 else f"10.249.{subnet + 1}.{4 + number}"


def subnets(nic: int) -> tuple[str, str]:
    """The master's, and the workers'."""
    return f"10.249.{63 + 2 * nic}.0/24", f"10.249.{64 + 2 * nic}.0/24"


def others(number: int, address: Callable[[int, int], str]) -> list[str]:
    return [address(pod, nic) for pod in range(NUM_PODS) if pod != number for nic in NICS]


def batch(program: str, lines: Sequence[str], *before: str) -> None:
    subprocess.run(
        [*before, program, "-batch", "-"], input="\n".join(lines), text=True, check=True,
        timeout=PATIENCE_S,
    )  # fmt: skip


def inside(pod: Pod) -> tuple[str, str]:
    return "nsenter", f"--net=/proc/{pod.pid}/ns/net"


def start_pod(number: int) -> Pod:
    """Its first process listens on every address that it will ever have."""
    program = [sys.executable, "-I", "-S", "-c", SERVER]
    pod = subprocess.Popen(["unshare", "-n", *program], stdout=subprocess.PIPE, text=True)
    assert pod.stdout is not None
    assert pod.stdout.readline() == "ready\n"
    batch("ip", ["link set lo up"], *inside(pod))
    for nic in NICS:
        port = f"v{number}-{nic}"
        lines = [
            f"link add {port} type veth peer name net{nic} netns {pod.pid}",
            f"link set {port} master fabric{nic} up",
        ]
        batch("ip", lines)
        # An IPAM plugin gives one; another in its subnet goes with it, or is kept by the kernel.
        lines = [
            f"address add {given_by_ipam(number, nic)}/24 dev net{nic}",
            f"address add {given_by_ipam(number + 100, nic)}/24 dev net{nic}",
            f"link set net{nic} up",
        ]
        batch("ip", lines if number else [lines[0], lines[2]], *inside(pod))
    return pod


def drop_other_sources() -> None:
    """What comes from each port. ARP's sender begins at its byte 14, the second half of a word.
    Source: RFC 826."""
    batch("ip", ["link add nowhere type bridge", "link set nowhere up"])
    lines = []
    for number in range(NUM_PODS):
        for nic in NICS:
            port = f"v{number}-{nic}"
            one, two, three, four = map(int, mapped(number, nic).split("."))
            high, low = f"0x{one:02x}{two:02x}", f"0x{three:02x}{four:02x}"
            add = f"filter add dev {port} ingress prio"
            lines += [
                f"qdisc add dev {port} clsact",
                f"{add} 1 protocol ip u32 match u32 {high}{low[2:]} 0xffffffff at 12 classid 1:1",
                f"{add} 2 protocol arp u32 match u16 {high} 0xffff at 14 match u16 {low} 0xffff "
                "at 16 classid 1:1",
                f"{add} 3 protocol all u32 match u32 0 0 classid 1:1 action mirred egress redirect "
                "dev nowhere",
            ]
    batch("tc", lines)


def reached(
    pods: Sequence[Pod], address: Callable[[int, int], str], how: str = "once"
) -> list[dict[str, str]]:
    """What each pod's kernel says of the others' addresses; all ask beside each other."""
    asking = [
        subprocess.Popen(
            [*inside(pod), sys.executable, "-I", "-S", "-c", ASKER, how, *others(number, address)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, pod in enumerate(pods)
    ]
    return [json.loads(each.communicate(timeout=PATIENCE_S)[0]) for each in asking]


class InitContainer:
    """`broadgauge.zip addresses`, of a pod on node NUMBER."""

    def __init__(self, archive: str, names: Path) -> None:
        self.archive, self.names = archive, names

    def run(
        self, pod: Pod, number: int, python: str, *before: str, interfaces: str = "net1,net2"
    ) -> tuple[int, str, str]:
        ended = subprocess.run(
            [*inside(pod), *before, python, "-I", "-S", self.archive, "addresses"],
            env={
                "PATH": os.environ["PATH"],
                "BROADGAUGE_ADDRESS_MAP": str(self.names),
                "BROADGAUGE_NODE_NAME": f"node-{number}",
                "BROADGAUGE_ADDRESS_INTERFACES": interfaces,
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return ended.returncode, ended.stdout, ended.stderr

    def network(
        self, pod: Pod, program: str, python: str, transport: str, nics: Sequence[int]
    ) -> tuple[int, str, str]:
        """`broadgauge.zip pod` or `networks`, which find these NICs by their addresses: no Multus
        says anything. With a /sys of the pod's own, as a container has."""
        attachments = tuple(
            AskedAttachment(definition=f"port-{nic}", interface=f"net{nic}", subnets=subnets(nic))
            for nic in nics
        )
        asked = AskedNetwork(name="vnics", transport=transport, attachments=attachments)
        words = [program, "--network", network_word(asked)]
        if program == "pod":
            words += ["--nodes", "1", "--ranks-per-node", "1", "--leader", "127.0.0.1"]
            words += ["--port", "29500", "--folder", str(self.names.parent / "work")]
        own_sys = 'mount -t sysfs sysfs /sys && exec "$0" "$@"'
        ended = subprocess.run(
            [*inside(pod), "unshare", "-m", "sh", "-c", own_sys,
             python, "-I", "-S", self.archive, *words],
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )  # fmt: skip
        return ended.returncode, ended.stdout, ended.stderr


def state(pod: Pod) -> list[str]:
    """Addresses and routes of `net1` and `net2`, as `ip` shows them, a line each."""
    asked = (("-4", "-o", "address", "show", "scope", "global"), ("route", "show"))
    return [
        " ".join(line.split())
        for words in asked
        for line in subprocess.check_output([*inside(pod), "ip", *words], text=True).splitlines()
    ]


def tell(pods: Sequence[Pod], init: InitContainer, python: str, other: str) -> dict[str, object]:
    told: dict[str, object] = {}
    lines = [
        f"node-{number}:ens{12 + nic}:net{nic}:{mapped(number, nic)}\n"
        for number in range(NUM_PODS)
        for nic in NICS
    ]
    init.names.write_text("".join(lines) + "node-0:ens19:net7:10.0.0.1\n")
    told["open"] = reached(pods, given_by_ipam, "until reached")
    drop_other_sources()
    for pod in pods:
        batch("ip", [f"neigh flush dev net{nic}" for nic in NICS], *inside(pod))
    told["dropped"] = reached(pods, given_by_ipam)
    told["state_before"] = state(pods[0])
    told["absent"] = init.run(pods[0], 0, python, interfaces="net1,net7")
    told["powerless"] = init.run(pods[0], 0, python, *WITHOUT_CAPABILITIES)
    told["state_still"] = state(pods[0])
    told["first"] = [init.run(pod, number, python) for number, pod in enumerate(pods)]
    told["after"] = reached(pods, mapped)
    told["states"] = [state(pod) for pod in pods]
    told["again"] = [init.run(pod, number, other) for number, pod in enumerate(pods)]
    told["states_again"] = [state(pod) for pod in pods]
    init.names.write_text(
        "node-0:ens13:net1:10.249.65.4/24:10.249.65.1\nnode-1:ens13:net1:10.249.66.55\n"
    )
    told["changed"] = [init.run(pods[n], n, other, interfaces="net1") for n in (0, 1)]
    told["networks"] = [
        init.network(pods[3], "networks", each, "virtio", NICS) for each in (python, other)
    ]
    told["refused"] = init.network(pods[3], "pod", python, "roce", NICS)
    lines = ["link set net2 down", "link set net2 name rail@0", "link set rail@0 up"]
    batch("ip", lines, *inside(pods[3]))
    told["renamed"] = init.network(pods[3], "networks", other, "virtio", NICS)
    told["states_changed"] = [state(pod) for pod in pods[:2]]
    return told


def main() -> None:
    archive, folder, python, other = sys.argv[1:]
    for nic in NICS:
        batch("ip", [f"link add fabric{nic} type bridge", f"link set fabric{nic} up"])
    pods: list[Pod] = []
    try:
        for number in range(NUM_PODS):
            pods.append(start_pod(number))
        init = InitContainer(archive, Path(folder) / "nodename_ip_mapping.yaml")
        sys.stdout.write(json.dumps(tell(pods, init, python, other)))
    finally:
        for pod in pods:
            pod.kill()
            pod.wait()


if __name__ == "__main__":
    main()
