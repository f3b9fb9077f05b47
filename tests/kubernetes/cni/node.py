"""A node's NICs and the network namespaces of its pods, for CNI plugins to work on."""

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

PROGRAMS = ("unshare", "nsenter", "ip")
LIMIT_S = 120
"""Against hangs: a plugin takes 20 ms."""
_HOLD = "echo ready && exec cat"
"""Ends when its standard input does, with the process that holds it."""


class Namespaces:
    """Of a process that does nothing, entered by others."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    @property
    def path(self) -> Path:
        """Of the network namespace."""
        return Path(f"/proc/{self.pid}/ns/net")

    def command(self, *arguments: str) -> list[str]:
        """Run in there by this user, who is root there."""
        entered = ["nsenter", "--target", str(self.pid), "--user", "--net", "--mount"]
        return [*entered, "--preserve-credentials", *arguments]

    def run(self, *arguments: str) -> str:
        """What it said. Raises CalledProcessError."""
        return subprocess.run(
            self.command(*arguments),
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=LIMIT_S,
        ).stdout

    def links(self) -> dict[str, dict[str, Any]]:
        """By name, without the loopback, as iproute2 says it."""
        found = json.loads(self.run("ip", "-json", "-details", "address", "show"))
        return {each["ifname"]: each for each in found if each["ifname"] != "lo"}


class Node(Namespaces):
    """Has no NIC yet and an empty /run, in which plugins keep notes; ends with its `with`."""

    def __init__(self) -> None:
        self._ends = ExitStack()
        # A user namespace for root, too: then what is tried needs no more than an ordinary user's.
        shell = f"mount -t tmpfs none /run && ip link set lo up && {_HOLD}"
        held = ["unshare", "--map-root-user", "--net", "--mount", "sh", "-c", shell]
        super().__init__(self._hold(held))

    def __enter__(self) -> "Node":
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def pod(self) -> Namespaces:
        """One more, without an interface."""
        return Namespaces(self._hold(self.command("unshare", "--net", "sh", "-c", _HOLD)))

    def add_nic(self, name: str, *, mtu: int = 1500) -> None:
        """Up, with a cable to nobody."""
        peer = ("peer", "name", f"{name}-far"[-15:], "mtu", str(mtu))
        self.run("ip", "link", "add", name, "mtu", str(mtu), "type", "veth", *peer)
        for end in (name, peer[2]):
            self.run("ip", "link", "set", end, "up")

    def add_bridge(self, name: str) -> None:
        self.run("ip", "link", "add", name, "type", "bridge")
        self.run("ip", "link", "set", name, "up")

    def has_kind(self, kind: str) -> bool:
        """Does the kernel know such interfaces?"""
        self.add_nic("try")
        tried = self.command("ip", "link", "add", "tried", "link", "try", "type", kind)
        is_known = subprocess.run(tried, check=False, capture_output=True).returncode == 0
        self.run("ip", "link", "delete", "try")
        return is_known

    def _hold(self, command: list[str]) -> int:
        """The process that has the namespaces, once they are there."""
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._ends.callback(process.communicate, timeout=LIMIT_S)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", command
        return process.pid
