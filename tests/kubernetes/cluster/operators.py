"""The real operators with their admission webhooks, as processes of a control plane.

An operator makes its webhook's certificate itself, into a Secret that a kubelet would mount into
its pod. Here it is copied into the folder where all of them look, under /tmp, so that each runs in
a mount namespace with a /tmp of its own. The API server finds the webhook by a Service that is
a name for this machine (ExternalName). Each has the rights of its own release's roles, no others.
"""

import base64
import json
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import yaml
from tests.kubernetes.cluster.control_plane import ControlPlane, free_ports, says_ok
from tests.kubernetes.cluster.objects import Manifest, Objects
from tests.kubernetes.cluster.operator_facts import (
    ADMISSION,
    OPERATORS,
    Operator,
    Ports,
    arguments,
    configuration,
    role_manifests,
    secret_manifest,
    webhook_manifest,
)
from tests.kubernetes.cluster.processes import Process, ProcessEndedError
from tests.kubernetes.cluster.waiting import wait_until

__all__ = ["OPERATORS", "Operators"]

_START_S = 180.0
"""It looks for its certificate after 1, 3, 7 and 15 seconds, and more seldom then."""
_MOST_RESTARTS = 2
_CERTIFICATES = "k8s-webhook-server/serving-certs"
"""Under /tmp; controller-runtime's default."""


class Operators:
    """Those of one control plane, whose kinds are installed; they end with it."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._control_plane = control_plane
        self._http = control_plane.http()
        self._objects = Objects(self._http)

    def start(self, *names: str) -> None:
        """Returns when each serves its webhooks; all at once take as long as one.

        A second start of one that was ended goes on with its certificate.
        """
        wanted = [OPERATORS[name] for name in names]
        started = [self._launch(each) for each in wanted]

        def is_ready(operator: Operator, ports: Ports) -> bool:
            for each in wanted:
                self._copy_certificate(each)
            return is_healthy(ports) and self._answers(operator, ports)

        for operator, (process, ports) in zip(wanted, started, strict=True):
            self._wait_until_ready(operator, process, ports, is_ready)
        for operator in wanted:
            self._wait_for_authority(operator)
            for path in operator.runtimes:
                for manifest in self._manifests(operator, path):
                    self._objects.apply(manifest)

    def _wait_until_ready(
        self,
        operator: Operator,
        process: Process,
        ports: Ports,
        is_ready: Callable[[Operator, Ports], bool],
    ) -> None:
        """One that ends while it comes up is started again, as a kubelet does with containers."""
        for restarts_left in range(_MOST_RESTARTS, -1, -1):
            asked = partial(is_ready, operator, ports)
            try:
                process.wait_until(asked, limit_s=_START_S)
                return
            except ProcessEndedError:
                if process.popen.poll() is None or restarts_left == 0:
                    raise
            self.end(operator.name)
            process, ports = self._launch(operator)

    def end(self, name: str) -> None:
        """As when its pod is deleted: its webhooks stay, and refuse what they would judge."""
        self._control_plane.processes.end(name)

    def close(self) -> None:
        """Ends those that run."""
        for name in OPERATORS.keys() & self._control_plane.processes.pids().keys():
            self.end(name)
        self._http.close()

    def _launch(self, operator: Operator) -> tuple[Process, Ports]:
        webhook_port, health_port = free_ports(2)
        ports = Ports(webhook=webhook_port, health=health_port)
        for manifest in self._cluster_objects(operator, ports):
            self._objects.apply(manifest)
        folder = self._folder(operator)
        (folder / _CERTIFICATES).mkdir(parents=True, exist_ok=True)
        kubeconfig = self._control_plane.add_user(operator.user, ["system:serviceaccounts"])
        (folder / "kubeconfig").write_bytes(kubeconfig.read_bytes())
        (folder / "program").touch()
        (folder / "config.yaml").write_text(json.dumps(configuration(operator, ports)))
        process = self._control_plane.processes.start(
            operator.name,
            in_own_tmp(folder, self._program(operator), arguments(operator, ports)),
            {"KUBECONFIG": "/tmp/kubeconfig"},
        )
        return process, ports

    def _copy_certificate(self, operator: Operator) -> None:
        """What a kubelet does with a Secret's volume."""
        secret = self._objects.read(secret_manifest(operator))
        for name, text in ((secret or {}).get("data") or {}).items():
            target = self._folder(operator) / _CERTIFICATES / name
            content = base64.b64decode(text)
            if not target.is_file() or target.read_bytes() != content:
                unfinished = target.with_suffix(".new")
                unfinished.write_bytes(content)
                unfinished.rename(target)

    def _answers(self, operator: Operator, ports: Ports) -> bool:
        """It says that it is ready while some of its webhooks are still to be registered."""
        paths = [
            webhook["clientConfig"]["service"]["path"]
            for each in self._manifests(operator, operator.webhooks)
            for webhook in each["webhooks"]
        ]
        server = f"https://127.0.0.1:{ports.webhook}"
        with httpx2.Client(base_url=server, verify=False, trust_env=False) as http:
            try:
                codes = {http.post(path, json={}).status_code for path in paths}
            except httpx2.TransportError:
                return False
        return httpx2.codes.NOT_FOUND not in codes

    def _wait_for_authority(self, operator: Operator) -> None:
        """The operator writes the certificate's authority into its webhooks' configurations."""

        def is_written() -> bool:
            return all(
                webhook["clientConfig"].get("caBundle")
                for kind, name in operator.configuration_names.items()
                for webhook in self._webhooks(kind, name)
            )

        wait_until(is_written, limit_s=_START_S, what=f"the certificate of {operator.name}")

    def _webhooks(self, kind: str, name: str) -> list[dict[str, Any]]:
        sought = {"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": name}}
        found = self._objects.read(sought)
        assert found is not None, f"no {kind} {name}"
        return found["webhooks"]

    def _cluster_objects(self, operator: Operator, ports: Ports) -> Iterator[Manifest]:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": operator.namespace}}
        yield secret_manifest(operator)
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": operator.service, "namespace": operator.namespace},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }
        yield from role_manifests(operator, self._manifests(operator, operator.roles))
        for each in self._manifests(operator, operator.webhooks):
            yield webhook_manifest(operator, each, ports)

    def _manifests(self, operator: Operator, path: str) -> list[Manifest]:
        text = (self._control_plane.programs.manifests / operator.name / path).read_text()
        return [each for each in yaml.safe_load_all(text) if each]

    def _folder(self, operator: Operator) -> Path:
        """Its /tmp."""
        return self._control_plane.folder / operator.name

    def _program(self, operator: Operator) -> Path:
        programs = self._control_plane.programs
        paths = {
            "training-operator": programs.training_operator,
            "jobset": programs.jobset,
            "trainer": programs.trainer,
        }
        return paths[operator.name]


def is_healthy(ports: Ports) -> bool:
    """Does the operator say so itself?"""
    return says_ok(f"http://127.0.0.1:{ports.health}/readyz")


def in_own_tmp(folder: Path, program: Path, its_arguments: Iterable[str]) -> list[str]:
    """Runs it with this folder as /tmp, where it finds itself as `program`."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "-r", "--mount"]
    mounts = 'mount --bind "$1" "$0/program" && mount --rbind "$0" /tmp'
    script = f'{mounts} && shift && exec /tmp/program "$@"'
    return [*unshare, "sh", "-c", script, str(folder), str(program), *its_arguments]
