"""A real Kubernetes control plane on this machine: etcd, API server, controllers, scheduler.

It listens on 127.0.0.1 only, keeps its data in a temporary folder, and is gone after `close`. Left
at their defaults: authorization by roles (RBAC), admission plugins, quotas, service accounts. Left
out: what judges a node by heartbeats, so that a node stays schedulable without any.
"""

import base64
import json
import random
import secrets
import shutil
import socket
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2
import lightkube
from lightkube.config.client_adapter import Client as HttpClient
from lightkube.config.client_adapter import ConnectionParams
from lightkube.config.kubeconfig import SingleConfig
from tests.kubernetes.cluster.processes import Processes
from tests.kubernetes.cluster.programs import Programs, find_programs
from tests.kubernetes.cluster.users import User, Users

ADMIN = "admin"
"""The user that may do anything."""
_START_S = 120.0
_FIRST_PORT = 15_000
_REQUEST_S = 30.0
_API_SERVERS_GOGC = "400"
"""Garbage collected seldom: a fifth less core time while kinds are installed, for 0.3 GB of memory.

Measured here with all kinds of crds.py: 15.2 s at the default, 11.7 s so.
"""
AUDITED = "audited"
"""The group of users whose requests are kept, for `ControlPlane.requests_of`."""
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "userGroups": [AUDITED]}, {"level": "None"}],
}
_WITHOUT_HEARTBEATS = "*,-node-lifecycle-controller,-taint-eviction-controller"


class ControlPlane:
    """Started by `with ControlPlane() as control_plane`."""

    def __init__(self) -> None:
        self.programs: Programs = find_programs()
        self.folder = Path(tempfile.mkdtemp(prefix="broadgauge-control-plane-"))
        self.processes = Processes(self.folder)
        """Operators add theirs."""
        self._users = Users()
        self._admin = User(name=ADMIN, groups=("system:masters",), token=secrets.token_hex(16))
        self._tokens = {ADMIN: self._admin.token}
        self._etcd_port, self._peer_port, self._port, self._scheduler_port = free_ports(4)

    def __enter__(self) -> "ControlPlane":
        try:
            self._write_files()
            self._start_etcd()
            self.start_api_server()
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

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def close(self) -> None:
        """Ends all processes, the operators' included, and removes the folder."""
        try:
            self.processes.end_all()
        finally:
            self._users.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    # Users

    def add_user(self, name: str, groups: Sequence[str] = ()) -> Path:
        """A user without any right; its kubeconfig."""
        self._tokens[name] = self._users.add(name, groups).token
        return self.kubeconfig(name)

    def requests_of(self, user: str) -> list[dict[str, Any]]:
        """What a user of group `audited` asked so far, as audit.k8s.io/v1 Events, in their order.

        What lasts (watches, followed logs) is there twice: when it began, and when it ended.
        """
        path = self.folder / "audit.log"
        *lines, _ = (path.read_text() if path.is_file() else "").split(
            "\n"
        )  # the last is not whole
        events = [json.loads(line) for line in lines]
        return [event for event in events if event["user"]["username"] == user]

    def revoke_user(self, name: str) -> None:
        """The tokens of `add_user` are refused (401): the API server forgets them within 10 s."""
        self._users.revoke(name)

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """Its file, for kubectl and for KUBECONFIG."""
        path = self.folder / f"{user.replace(':', '-')}.kubeconfig"
        unfinished = path.with_name(secrets.token_hex(8))
        unfinished.write_text(json.dumps(self._kubeconfig(user), indent=2))
        unfinished.chmod(0o600)
        return unfinished.rename(path)

    def _kubeconfig(self, user: str) -> dict[str, Any]:
        authority = base64.b64encode((self.folder / "certificates/apiserver.crt").read_bytes())
        cluster = {"server": self.url, "certificate-authority-data": authority.decode()}
        context = {"cluster": "test", "user": user}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self._tokens[user]}}],
            "contexts": [{"name": "test", "context": context}],
            "current-context": "test",
        }

    def client(self, user: str = ADMIN, namespace: str | None = None) -> lightkube.Client:
        """A typed client; the caller closes it."""
        return lightkube.Client(
            config=self._config(user),
            namespace=namespace,
            timeout=httpx2.Timeout(_REQUEST_S),
            field_manager="broadgauge-tests",
            trust_env=False,
        )

    def http(self, user: str = ADMIN) -> httpx2.Client:
        """For requests that the typed client does not make; the caller closes it."""
        parameters = ConnectionParams(timeout=httpx2.Timeout(_REQUEST_S), trust_env=False)
        return HttpClient(self._config(user), parameters)

    def _config(self, user: str) -> SingleConfig:
        config = lightkube.KubeConfig.from_dict(self._kubeconfig(user)).get()
        assert config is not None
        return config

    # Processes

    def stop_api_server(self, *, kill: bool = True) -> None:
        """As when its machine fails; without `kill` it says goodbye, which takes 10 s."""
        self.processes.end("kube-apiserver", kill=kill)

    def start_api_server(self) -> None:
        """Returns when it is ready; on the same port, with the same data."""
        command, environment = self._api_server_command(), {"GOGC": _API_SERVERS_GOGC}
        process = self.processes.start("kube-apiserver", command, environment)
        process.wait_until(self.is_ready, limit_s=_START_S)

    def restart_api_server(self, *, kill: bool = True) -> None:
        """For two seconds and more nobody answers."""
        self.stop_api_server(kill=kill)
        self.start_api_server()

    def is_ready(self) -> bool:
        """Does the API server say so?"""
        if not (self.folder / "certificates/apiserver.crt").is_file():
            return False
        with self.http() as http:
            try:
                return http.get("/readyz").status_code == httpx2.codes.OK
            except httpx2.TransportError:
                return False

    def cpu_s(self) -> dict[str, float]:
        """User and system time of each process since the start, by name; operators included."""
        return self.processes.cpu_s()

    def _write_files(self) -> None:
        (self.folder / "certificates").mkdir()
        (self.folder / "service-accounts.key").write_text(new_signing_key())
        row = f'{self._admin.token},{ADMIN},{ADMIN},"{self._admin.groups[0]}"\n'
        (self.folder / "tokens.csv").write_text(row)
        webhook = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "users", "cluster": {"server": self._users.url}}],
            "contexts": [{"name": "users", "context": {"cluster": "users", "user": ""}}],
            "current-context": "users",
        }
        (self.folder / "users.kubeconfig").write_text(json.dumps(webhook))
        (self.folder / "audit-policy.json").write_text(json.dumps(_AUDIT_POLICY))

    def _start_etcd(self) -> None:
        clients = f"http://127.0.0.1:{self._etcd_port}"
        options = {
            "data-dir": "etcd",
            "listen-client-urls": clients,
            "advertise-client-urls": clients,
            "listen-peer-urls": f"http://127.0.0.1:{self._peer_port}",
            "unsafe-no-fsync": "true",
        }
        self.processes.start("etcd", command_line(self.programs.etcd, options))

    def _api_server_command(self) -> list[str]:
        options = {
            "etcd-servers": f"http://127.0.0.1:{self._etcd_port}",
            "bind-address": "127.0.0.1",
            "secure-port": str(self._port),
            "cert-dir": "certificates",
            "endpoint-reconciler-type": "none",
            "service-account-issuer": "https://localhost",
            "service-account-key-file": "service-accounts.key",
            "service-account-signing-key-file": "service-accounts.key",
            "token-auth-file": "tokens.csv",
            "authentication-token-webhook-config-file": "users.kubeconfig",
            "authentication-token-webhook-version": "v1",
            "authentication-token-webhook-cache-ttl": "1s",
            "authorization-mode": "RBAC",
            "audit-policy-file": "audit-policy.json",
            "audit-log-path": "audit.log",
            "service-cluster-ip-range": "10.96.0.0/16",
            "allow-privileged": "true",
            "kubelet-preferred-address-types": "InternalIP",
        }
        return command_line(self.programs.api_server, options)

    def _start_controllers(self) -> None:
        kubeconfig = str(self.kubeconfig())
        manager = {
            "kubeconfig": kubeconfig,
            "service-account-private-key-file": "service-accounts.key",
            "root-ca-file": "certificates/apiserver.crt",
            "controllers": _WITHOUT_HEARTBEATS,
            "leader-elect": "false",
            "secure-port": "0",
        }
        scheduler = {
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "leader-elect": "false",
            "bind-address": "127.0.0.1",
            "secure-port": str(self._scheduler_port),
        }
        managing, scheduling = (
            self.processes.start(program.name, command_line(program, options))
            for program, options in (
                (self.programs.controller_manager, manager),
                (self.programs.scheduler, scheduler),
            )
        )
        managing.wait_until(lambda: self.has_service_account("default"), limit_s=_START_S)
        ready = f"https://127.0.0.1:{self._scheduler_port}/readyz"
        scheduling.wait_until(lambda: says_ok(ready), limit_s=_START_S)

    def has_service_account(self, namespace: str) -> bool:
        """Has the controller made the one that pods get unasked? Before that they are refused."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        with self.http() as http:
            return http.get(path).status_code == httpx2.codes.OK


def says_ok(url: str) -> bool:
    """Of a server on this machine whose certificate is its own."""
    try:
        return httpx2.get(url, verify=False, trust_env=False).status_code == httpx2.codes.OK
    except httpx2.TransportError:
        return False


def command_line(program: Path, options: dict[str, str]) -> list[str]:
    return [str(program), *(f"--{name}={value}" for name, value in options.items())]


def free_ports(count: int) -> list[int]:
    """Of 127.0.0.1, all different; nobody keeps them until they are used.

    None of those that the kernel gives to callers: one of their many connections, even of a caller
    that was connected with itself while the server was away, would hold it when the server comes.
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
