"""Machines with sshd to test `platform: hosts` on?

    this PID namespace ─┬─ COMMAND            the tool's machine: `ctl0` 10.200.0.254
                        ├─ sshd in node 0     `ctl` 10.200.0.1, `eth0` 10.80.0.1 (shaped)
                        └─ sshd in node 1     `ctl` 10.200.0.2, `eth0` 10.80.0.2 (shaped)

Nodes are those of the emulated platform, joined by its shaped links, with one more, unshaped
interface for control, a temporary folder of their own, and an sshd. `ssh` in PATH is OpenSSH's
with a configuration of this module's: `node0` and `node1` are known hosts; `stranger` is node 0
with another host key; `refused` is node 0 with a key that it does not take; `noisy` is node 1 with
a login that prints a banner; `nowhere` is an address that nobody has.

When the command has ended, a report is written to `report` in the folder: which processes and files
are left on the machines. Whatever happens, PID 1's end takes all of it away. Needs root and sshd.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from broadgauge.agent.emulated.namespaces import enter_cluster_namespaces, prepare_cluster_root
from broadgauge.agent.emulated.nodes import EmulatedCluster, Node, build_cluster
from broadgauge.agent.emulated.shaping import LinkPlan

CONTROL_OF_TOOL = "10.200.0.254"
TEMPORARY = "/run/temporary"
"""Each machine's TMPDIR. Its /tmp is this machine's: the checkout may be there."""
SHARED = "/run/shared"
"""Where each machine sees the rig's folder, as it would a file system that they share."""
SSHD = "/usr/sbin/sshd"
BANNER = r"echo Welcome to the cluster; echo No jobs on this node; eval \"$SSH_ORIGINAL_COMMAND\""


@dataclass(frozen=True, slots=True, kw_only=True)
class RigPlan:
    """What machines are there?"""

    folder: str
    """For keys, configuration, logs and the report; made by the caller."""
    num_nodes: int = 2
    rate_gbps: float | None = None
    """Of the data network; None: unshaped."""
    more_rates_gbps: tuple[float | None, ...] = ()
    """Of further data networks: `eth1`, `eth2`."""
    mtu_bytes: int = 1500
    cores: tuple[tuple[int, ...], ...] = ()
    """Of each machine; empty: all of them."""
    clock_offset_s: dict[str, float] = field(default_factory=dict)
    """By machine (`node1`): how far its processes' clock is off (libfaketime)."""
    environment: dict[str, str] = field(default_factory=dict)
    """For every command over ssh, beside sshd's own: a PATH with another python3 first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was left when the command had ended."""

    exit_code: int
    processes: tuple[str, ...]
    """Command lines of all but PID 1 and the sshds."""
    files: dict[str, tuple[str, ...]]
    """In the temporary folder of each machine."""


def run_beside(plan: RigPlan, command: Sequence[str], **options: object) -> "Beside":
    """Start the rig with a command in it; the caller waits for it."""
    program = [sys.executable, "-m", "tests.platforms.hosts.rig", json.dumps(asdict(plan))]
    process = subprocess.Popen([*program, *command], **options)  # type: ignore[call-overload]
    return Beside(process=process, plan=plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A running rig."""

    process: "subprocess.Popen[str]"
    plan: RigPlan

    def report(self) -> Report:
        """Once it has ended."""
        told = json.loads((Path(self.plan.folder) / "report").read_text())
        files = {name: tuple(found) for name, found in told["files"].items()}
        return Report(exit_code=told["exit_code"], processes=tuple(told["processes"]), files=files)


def main() -> int:
    told = json.loads(sys.argv[1])
    lists = {
        "cores": tuple(map(tuple, told["cores"])),
        "more_rates_gbps": tuple(told["more_rates_gbps"]),
    }
    plan = RigPlan(**{**told, **lists})
    enter_cluster_namespaces()
    pid = os.fork()
    if pid == 0:
        os._exit(_be_root(plan, sys.argv[2:]))
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _be_root(plan: RigPlan, command: Sequence[str]) -> int:
    """PID 1: build, start the sshds, run the command, report."""
    prepare_cluster_root()
    folder = Path(plan.folder)
    write_keys(folder, plan.num_nodes)
    cluster = _build(plan)
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", "ctl0", "type", "bridge")
    _run("ip", "addr", "add", f"{CONTROL_OF_TOOL}/24", "dev", "ctl0")
    _run("ip", "link", "set", "ctl0", "up")
    servers = [_start_server(plan, number, node) for number, node in enumerate(cluster.nodes)]
    _wait_for_servers(plan)
    environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    process = subprocess.Popen(command, env=environment)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda sent, _: process.send_signal(sent))
    code = process.wait()
    report = Report(exit_code=code, processes=_others(servers), files=_files(plan, cluster))
    (folder / "report").write_text(json.dumps(asdict(report)))
    return code if code >= 0 else 128 - code


def _build(plan: RigPlan) -> EmulatedCluster:
    """The nodes and their data networks, each with its rate."""
    rates_gbps = (plan.rate_gbps, *plan.more_rates_gbps)
    links = [LinkPlan(rate_gbps=rate_gbps, mtu=plan.mtu_bytes) for rate_gbps in rates_gbps]
    cluster = build_cluster(
        plan.num_nodes, links[0], nics_per_node=len(links), cores_per_node=plan.cores or None
    )
    for node in cluster.nodes:
        for nic, link in zip(node.nics, links, strict=True):
            nic.shape(link)
    return cluster


def write_keys(folder: Path, num_nodes: int) -> None:
    """Host and user keys, the client's configuration, and `ssh` in a folder for PATH."""
    for name in ("host", "user", "noisy", "other"):
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
    noisy = f'command="{BANNER}" ' + (folder / "noisy.pub").read_text()
    (folder / "authorized").write_text((folder / "user.pub").read_text() + noisy)
    addresses = {f"node{number}": address_of(number) for number in range(num_nodes)}
    key, others = (_public_key(folder / f"{name}.pub") for name in ("host", "other"))
    (folder / "known").write_text(
        "".join(f"{name} {key}\n" for name in (*addresses, "refused", "noisy"))
    )
    (folder / "known-strange").write_text(f"stranger {others}\n")
    addresses |= {"stranger": address_of(0), "refused": address_of(0), "noisy": address_of(1)}
    addresses |= {"nowhere": "10.200.0.99"}
    hosts = [_host_entry(folder, name, address) for name, address in addresses.items()]
    (folder / "config").write_text("".join(hosts))
    wrapper = folder / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
    wrapper.chmod(0o755)


def address_of(number: int) -> str:
    """Of a machine, on the control network."""
    return f"10.200.0.{number + 1}"


def _host_entry(folder: Path, name: str, address: str) -> str:
    known = folder / ("known-strange" if name == "stranger" else "known")
    identity = folder / {"refused": "other", "noisy": "noisy"}.get(name, "user")
    return (
        f"Host {name}\n  HostName {address}\n  HostKeyAlias {name}\n  User root\n"
        f"  IdentityFile {identity}\n  IdentitiesOnly yes\n  UserKnownHostsFile {known}\n"
        "  GlobalKnownHostsFile /dev/null\n"
        "  KexAlgorithms curve25519-sha256\n"  # the one by default takes most of ssh's time
    )


def _public_key(path: Path) -> str:
    return " ".join(path.read_text().split()[:2])


def _start_server(plan: RigPlan, number: int, node: Node) -> int:
    """Fork an sshd into the node and give it its interface for control."""
    go_in, go_out = os.pipe()
    entered_in, entered_out = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            node.enter()
            _run("mount", "-t", "tmpfs", "none", "/run")
            Path("/run/sshd").mkdir()
            Path(SHARED).mkdir()
            _run("mount", "--bind", plan.folder, SHARED)
            Path(TEMPORARY).mkdir()
            _run("mount", "-t", "tmpfs", "none", TEMPORARY)
            start_up = Path.home() / ".bashrc"
            if start_up.exists():  # whatever the developer's own does takes its time at each ssh
                _run("mount", "--bind", "/dev/null", str(start_up))
            os.write(entered_out, b"x")
            os.read(go_in, 1)
            _run("ip", "addr", "add", f"{address_of(number)}/24", "dev", "ctl")
            _run("ip", "link", "set", "ctl", "up")
            _become_server(plan, node)
        except BaseException:  # noqa: BLE001  the last frame of a forked child
            traceback.print_exc()
        finally:
            os._exit(1)
    os.read(entered_in, 1)
    _run(
        "ip", "link", "add", f"c{number}", "type", "veth", "peer", "name", "ctl", "netns", str(pid)
    )
    _run("ip", "link", "set", f"c{number}", "master", "ctl0", "up")
    os.write(go_out, b"x")
    for fd in (go_in, go_out, entered_in, entered_out):
        os.close(fd)
    return pid


def _become_server(plan: RigPlan, node: Node) -> None:
    folder = Path(SHARED)
    settings = [
        f"HostKey {folder}/host",
        f"AuthorizedKeysFile {folder}/authorized",
        "StrictModes no",
        "UsePAM no",
        "PidFile none",
        "PermitRootLogin yes",
        "AcceptEnv LANG",
    ]
    variables = {"TMPDIR": TEMPORARY, **plan.environment}
    if node.hostname in plan.clock_offset_s:
        variables["LD_PRELOAD"] = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
        variables["FAKETIME"] = f"{plan.clock_offset_s[node.hostname]:+g}s"
        variables["FAKETIME_DONT_FAKE_MONOTONIC"] = "1"
    if variables:
        settings.append("SetEnv " + " ".join(f"{k}={v}" for k, v in variables.items()))
    config = folder / f"{node.hostname}.sshd"
    config.write_text("\n".join([*settings, ""]))
    log = os.open(folder / f"{node.hostname}.sshd.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)
    os.execv(SSHD, [SSHD, "-D", "-e", "-f", str(config)])


def _wait_for_servers(plan: RigPlan) -> None:
    end_s = time.monotonic() + 60
    for number in range(plan.num_nodes):
        ssh = [f"{plan.folder}/bin/ssh", "-o", "BatchMode=yes", f"node{number}", "true"]
        while subprocess.run(ssh, check=False, stderr=subprocess.PIPE).returncode != 0:
            if time.monotonic() > end_s:
                raise TimeoutError(f"no sshd on node{number}")
            time.sleep(0.05)


def _others(servers: Sequence[int], patience_s: float = 25.0) -> tuple[str, ...]:
    """Command lines of what still runs beside PID 1 and the servers; ended ones have a moment."""
    end_s = time.monotonic() + patience_s
    while True:
        _reap(servers)
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in (1, *servers):
                found.append(command_line(int(entry.name)))
        found = [line for line in found if line and not line.startswith("sshd")]
        if not found or time.monotonic() > end_s:
            return tuple(found)
        time.sleep(0.1)


def command_line(pid: int) -> str:
    """Empty for a thread of the kernel, and for a process that has ended since it was listed."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return b" ".join(words).decode(errors="replace").strip()


def _reap(servers: Sequence[int]) -> None:
    """PID 1 inherits orphans."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        assert pid not in servers, "an sshd has ended"


def _files(plan: RigPlan, cluster: EmulatedCluster) -> dict[str, tuple[str, ...]]:
    """What is in the temporary folder of each, asked over ssh as it is the server's own."""
    found = {}
    for node in cluster.nodes:
        ssh = [f"{plan.folder}/bin/ssh", node.hostname, f"find {TEMPORARY} -mindepth 1"]
        listed = subprocess.run(ssh, check=True, capture_output=True, text=True).stdout
        found[node.hostname] = tuple(listed.splitlines())
    return found


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
