"""A real Kubernetes control plane on this machine: etcd, API server, controllers, scheduler.

It listens on 127.0.0.1 only and is gone after `close`. Left at their defaults: authorization by
roles (RBAC), admission plugins, service accounts. Left out: what judges a node by heartbeats, so
that a node stays schedulable without any. It has no nodes: pods stay Pending where a test brings
none (tests/kubernetes/kubelet).

Two users have tokens: `admin`, who may do anything, and `guest`, who has no right until a test's
RoleBinding gives one to the User of this name. `api(user)` is what either asks.
"""

import base64
import json
import random
import secrets
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.kubernetes.cluster import audit
from tests.kubernetes.cluster.api import Api, RefusedError
from tests.kubernetes.cluster.processes import Processes
from tests.kubernetes.cluster.programs import program

ADMIN, GUEST = "admin", "guest"
_FIRST_PORT = 15_000
_NOBODYS = "192.0.2.1"
"""Told to pods, of which none runs. Left to itself the API server asks for a default route, which
a network namespace of a test need not have. Source: TEST-NET-1 in RFC 5737."""
_PATIENT = {"heartbeat-interval": "500", "election-timeout": "5000"}
"""Milliseconds. etcd gives a request up after 5 s and two of the latter: 15 s instead of 7."""
_WITHOUT_HEARTBEATS = "*,-node-lifecycle-controller,-taint-eviction-controller"


class ControlPlane:
    """Started by `with ControlPlane(folder) as control_plane`; its logs stay in the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes = Processes(folder)
        """Operators add theirs."""
        self._tokens = {name: secrets.token_hex(16) for name in (ADMIN, GUEST)}
        self._etcd_port, self._peer_port, self._port = free_ports(3)
        self.certificate = folder / "certificates/apiserver.crt"
        """The API server's own for 127.0.0.1, and its authority."""
        self.kubeconfig = folder / "admin.kubeconfig"
        """For programs that read one."""
        self.audit_log = folder / "kube-apiserver.audit"
        """What service accounts asked: cluster/audit.py reads it."""

    def __enter__(self) -> "ControlPlane":
        try:
            self._write_files()
            self._start_etcd()
            self._start_api_server("kube-apiserver", self._port, "/registry")
            self.kubeconfig.write_text(json.dumps(self._kubeconfig()))
            self._start_controllers()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends all processes, the operators' included, and removes the data."""
        try:
            self.processes.end_all()
        finally:
            shutil.rmtree(self.folder / "etcd", ignore_errors=True)

    def api(self, user: str = ADMIN) -> Api:
        return self._api(self._port, user)

    def add_api_server(self, name: str) -> Api:
        """Another one over the same etcd, for kinds in other versions: it knows nothing of what the
        first one keeps, and has no controllers."""
        (port,) = free_ports(1)
        self._start_api_server(f"kube-apiserver-{name}", port, f"/{name}")
        return self._api(port)

    def has_service_account(self, namespace: str) -> bool:
        """Has the controller made the one that pods get unasked? Before that they are refused."""
        metadata = {"name": "default", "namespace": namespace}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        return self.api().read(account) is not None

    def restart_api_server(self) -> None:
        """As after a crash of it: nobody is answered meanwhile, and all watches end."""
        self.processes.end("kube-apiserver")
        self._start_api_server("kube-apiserver", self._port, "/registry")

    def for_kubelets(self) -> dict[str, Any]:
        """What they are told: how to reach the API server, and a certificate of their own."""
        folder = self.folder / "certificates"
        return {
            "kubeconfig": self.kubeconfig,
            "certificate": (folder / "apiserver.crt", folder / "apiserver.key"),
        }

    def _api(self, port: int, user: str = ADMIN) -> Api:
        return Api(f"https://127.0.0.1:{port}", self.certificate, self._tokens[user])

    def _write_files(self) -> None:
        (self.folder / "certificates").mkdir()
        (self.folder / "service-accounts.key").write_text(new_signing_key())
        groups = {ADMIN: "system:masters", GUEST: "guests"}
        rows = [f'{token},{name},{name},"{groups[name]}"' for name, token in self._tokens.items()]
        (self.folder / "tokens.csv").write_text("\n".join(rows) + "\n")
        (self.folder / "audit-policy.json").write_text(json.dumps(audit.POLICY))

    def _kubeconfig(self) -> dict[str, Any]:
        authority = base64.b64encode(self.certificate.read_bytes()).decode()
        server = f"https://127.0.0.1:{self._port}"
        cluster = {"server": server, "certificate-authority-data": authority}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": ADMIN, "user": {"token": self._tokens[ADMIN]}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": ADMIN}}],
            "current-context": "test",
        }

    def _start_etcd(self) -> None:
        clients = f"http://127.0.0.1:{self._etcd_port}"
        peers = f"http://127.0.0.1:{self._peer_port}"
        options = {
            "data-dir": "etcd",
            "listen-client-urls": clients,
            "advertise-client-urls": clients,
            "listen-peer-urls": peers,
            "initial-advertise-peer-urls": peers,
            "initial-cluster": f"default={peers}",
            "unsafe-no-fsync": "true",
            **_PATIENT,
        }
        process = self.processes.start("etcd", command_line(program("etcd"), options))
        # A caller that connects before it listens may be connected with itself.
        process.wait_until_ready(lambda: refusal_of(self._etcd_port))

    def _start_api_server(self, name: str, port: int, prefix: str) -> None:
        options = {
            "etcd-servers": f"http://127.0.0.1:{self._etcd_port}",
            "etcd-prefix": prefix,
            "bind-address": "127.0.0.1",
            "advertise-address": _NOBODYS,
            "secure-port": str(port),
            "cert-dir": "certificates",
            "endpoint-reconciler-type": "none",
            "service-account-issuer": "https://localhost",
            "service-account-key-file": "service-accounts.key",
            "service-account-signing-key-file": "service-accounts.key",
            "token-auth-file": "tokens.csv",
            "authorization-mode": "RBAC",
            "audit-policy-file": "audit-policy.json",
            "audit-log-path": f"{name}.audit",
            "service-cluster-ip-range": "10.96.0.0/16",
            "allow-privileged": "true",
            "kubelet-preferred-address-types": "InternalIP",
        }
        command = command_line(program("kube-apiserver"), options)
        process = self.processes.start(name, command)
        process.wait_until_ready(lambda: why_not_ready(self._api, port))

    def _start_controllers(self) -> None:
        kubeconfig = str(self.kubeconfig)
        manager = {
            "kubeconfig": kubeconfig,
            "service-account-private-key-file": "service-accounts.key",
            "root-ca-file": str(self.certificate),
            "controllers": _WITHOUT_HEARTBEATS,
            "leader-elect": "false",
            "secure-port": "0",
        }
        scheduler = {
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "leader-elect": "false",
            "secure-port": "0",
        }
        for name, options in {
            "kube-controller-manager": manager,
            "kube-scheduler": scheduler,
        }.items():
            self.processes.start(name, command_line(program(name), options))


def why_not_ready(api: Callable[[int], Api], port: int) -> str | None:
    """What the API server there, or nobody, says instead of being ready; None once it is."""
    try:
        api(port).request("GET", "/readyz")
    except (OSError, RefusedError) as refusal:  # its certificate may not be written yet
        return str(refusal)
    return None


def refusal_of(port: int) -> str | None:
    """Why nobody can be reached there; None where somebody listens."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError as refusal:
        return str(refusal)
    return None


def command_line(path: Path, options: dict[str, str]) -> list[str]:
    return [str(path), *(f"--{name}={value}" for name, value in options.items())]


def free_ports(count: int) -> list[int]:
    """Of 127.0.0.1, all different; nobody keeps them until they are used.

    None of those that the kernel gives to callers: one of the many connections of this machine's
    programs would have it before the server comes.
    """
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    for port in random.sample(range(_FIRST_PORT, max(first, _FIRST_PORT + 1000)), 1000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"no {count} free ports of 127.0.0.1 from {_FIRST_PORT} on")


def new_signing_key() -> str:
    """A private key of the curve P-256, in PEM.

    Source: ECPrivateKey in RFC 5915, section 3, without its optional public key, which follows from
    the number; object identifier of the curve in RFC 5480, section 2.1.1.1. A number of 31 random
    bytes is below the curve's order.
    """
    curve = bytes.fromhex("a00a06082a8648ce3d030107")
    number = b"\x00" + secrets.token_bytes(31)
    body = b"\x02\x01\x01" + b"\x04\x20" + number + curve
    text = base64.b64encode(b"\x30" + bytes([len(body)]) + body).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{text}\n-----END EC PRIVATE KEY-----\n"
