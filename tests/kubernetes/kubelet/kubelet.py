"""What is one process kubelet? N nodes, one watch of pods, one thread a pod."""

import logging
from pathlib import Path
from typing import Any

from tests.kubernetes.kubelet import cgroups, cni
from tests.kubernetes.kubelet.api import Api, Events, Watched
from tests.kubernetes.kubelet.attach import Attacher
from tests.kubernetes.kubelet.claims import Claims
from tests.kubernetes.kubelet.config import KubeletConfig
from tests.kubernetes.kubelet.dns import DnsServer, find
from tests.kubernetes.kubelet.environment import quantity
from tests.kubernetes.kubelet.exits import Exits
from tests.kubernetes.kubelet.fabric import DNS_ADDRESS, FabricBuilder
from tests.kubernetes.kubelet.faults import Faults
from tests.kubernetes.kubelet.logs_server import LogsServer
from tests.kubernetes.kubelet.nodes import node_address, register
from tests.kubernetes.kubelet.pod import PodWorker
from tests.kubernetes.kubelet.sandbox import Sandbox, Sandboxes, Wanted
from tests.kubernetes.kubelet.spawner import Spawner

Json = dict[str, Any]
log = logging.getLogger("kubelet")
_DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/namespaces/{}/network-attachment-definitions/{}"


class Kubelet:
    """All nodes of one test cluster."""

    def __init__(self, config: KubeletConfig, spawner: Spawner) -> None:
        self.config, self.spawner = config, spawner
        cgroups.remove_leftovers(cgroups.own_prefix(config.folder))
        self.api = Api(config.kubeconfig)
        self.events = Events(self.api)
        self.exits = Exits()
        self.node_specs = {spec.name: spec for spec in config.nodes}
        self._numbers = {spec.name: number for number, spec in enumerate(config.nodes)}
        self.workers: dict[str, PodWorker] = {}
        self.faults = Faults(self)
        self.builder = FabricBuilder(config.pod_network, list(config.fabrics))
        self.sandboxes = Sandboxes(self.builder, Attacher(self.builder))
        self.claims = Claims(self.api, config.storage)
        self._services = Watched(self.api, "/api/v1/services")
        self._configs = [
            Watched(self.api, f"/api/v1/{kind}", self._on_source)
            for kind in ("configmaps", "secrets")
        ]
        self._pods = Watched(self.api, "/api/v1/pods", self._on_pod)
        self.logs = LogsServer(self)

    def start(self) -> None:
        """Register the nodes, then take their pods."""
        self.logs.start()
        for spec in self.config.nodes:
            register(self.api, spec, self.config, (self.node_address(spec.name), self.logs.port))
        self.claims.start()
        for watched in (self._services, *self._configs, self._pods):
            watched.start()
        for watched in (self._services, self._pods):
            watched.wait()
        receiving = self.builder.call(self._dns_socket)
        DnsServer(receiving, self._look_up, self.config.dns_patience_s)

    def node_address(self, name: str) -> str:
        return node_address(self._numbers[name])

    def node_place(self, name: str) -> tuple[str, int]:
        return name, self._numbers[name]

    def make_sandbox(self, pod: Json) -> Sandbox:
        """Raises CniError where an attachment can't be made."""
        metadata, spec = pod["metadata"], pod["spec"]
        annotation = (metadata.get("annotations") or {}).get(cni.NETWORKS)
        attachments = []
        for selection in cni.selections(annotation, metadata["namespace"]):
            definition = self.api.get(_DEFINITIONS.format(selection.namespace, selection.name))
            if definition is None:
                raise cni.missing_definition(selection)
            attachments.append(cni.read_definition(selection, definition))
        wanted = Wanted(
            uid=metadata["uid"],
            node=self.node_place(spec["nodeName"]),
            attachments=attachments,
            resources=_extended_resources(spec),
            is_host=bool(spec.get("hostNetwork")),
        )
        return self.sandboxes.create(wanted)

    def find_log(
        self, key: tuple[str, str], container: str, *, previous: bool
    ) -> tuple[Path, Any] | str:
        """The folder of a container's log and whether it is over, or why there is none."""
        worker = self.find_worker(*key)
        if worker is None:
            return f'pods "{key[1]}" not found'
        record = next((one for one in worker.record.records if one.name == container), None)
        if record is None:
            return f"container {container} is not valid for pod {key[1]}"
        is_waiting = "waiting" in record.state  # to run again: what ended last is the previous one
        launch = record.launches - (2 if previous and not is_waiting else 1)
        if launch < 0 and previous:
            return f'previous terminated container "{container}" in pod "{key[1]}" not found'
        if launch < 0:
            reason = (record.state.get("waiting") or {}).get("reason", "ContainerCreating")
            return f'container "{container}" in pod "{key[1]}" is waiting to start: {reason}'
        folder = worker.log_folder / container / str(launch)

        def is_over() -> bool:
            return record.launches - 1 != launch or not record.is_running

        return folder, is_over

    def find_worker(self, namespace: str, name: str) -> PodWorker | None:
        """The newest pod of that name."""
        found = [one for one in list(self.workers.values()) if one.key == (namespace, name)]
        return found[-1] if found else None

    def forget(self, worker: PodWorker) -> None:
        self.workers.pop(worker.uid, None)

    def _on_pod(self, kind: str, pod: Json) -> None:
        node, uid = pod["spec"].get("nodeName"), pod["metadata"]["uid"]
        if node not in self.node_specs or self.faults.is_gone(node):
            return
        worker = self.workers.get(uid)
        if kind == "DELETED":
            if worker is not None:
                worker.queue.put(("gone", "forced"))
        elif worker is not None:
            worker.queue.put(("pod", pod))
        elif (pod.get("status") or {}).get("phase", "Pending") == "Pending":
            self.workers[uid] = worker = PodWorker(self, pod)
            worker.thread.start()
        elif pod["metadata"].get("deletionTimestamp"):
            self._delete_lost(pod)

    def _delete_lost(self, pod: Json) -> None:
        """A pod of an earlier kubelet, of which nothing runs any more."""
        metadata = pod["metadata"]
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        self.api.delete(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}", body)

    def _on_source(self, kind: str, source: Json) -> None:
        """A ConfigMap or Secret changed: volumes of its namespace are written again."""
        if kind == "ADDED":
            return
        for worker in list(self.workers.values()):
            if worker.key[0] == source["metadata"]["namespace"]:
                worker.queue.put(("refresh", None))

    def _look_up(self, name: str) -> list[str] | None:
        services, pods = list(self._services.objects.values()), list(self._pods.objects.values())
        return find(name, services, pods)

    def _dns_socket(self) -> Any:
        import socket

        receiving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiving.bind((DNS_ADDRESS, 53))
        return receiving


def _extended_resources(spec: Json) -> dict[str, int]:
    """How much of each resource with a domain do all containers ask for?"""
    found: dict[str, int] = {}
    for container in spec["containers"]:
        for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            if "/" in name:
                found[name] = found.get(name, 0) + int(quantity(amount))
    return found
