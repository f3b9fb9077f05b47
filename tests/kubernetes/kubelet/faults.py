"""What can tests break: containers, pods, nodes, networks, logs, pulls, mounts?"""

import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.kubernetes.kubelet.api import RefusedError
from tests.kubernetes.kubelet.fabric import set_link
from tests.kubernetes.kubelet.nodes import set_ready
from tests.kubernetes.kubelet.pod import Stop, signal_process
from tests.kubernetes.kubelet.status import ContainerRecord
from tests.kubernetes.kubelet.volumes import MountError

if TYPE_CHECKING:
    from tests.kubernetes.kubelet.kubelet import Kubelet
    from tests.kubernetes.kubelet.pod import PodWorker

Json = dict[str, Any]


class Faults:
    """Each method without an underscore is a request of the control socket."""

    def __init__(self, kubelet: "Kubelet") -> None:
        self._kubelet = kubelet
        self._gone: set[str] = set()
        self._failing_mounts = 0
        self.pull_delay_s = 0.0

    def is_gone(self, node: str) -> bool:
        return node in self._gone

    def check_mount(self, pod: Json) -> None:
        """Raises MountError as often as a test asked, for pods that mount a claim."""
        volumes = pod["spec"].get("volumes") or ()
        claim = next((one for one in volumes if "persistentVolumeClaim" in one), None)
        if claim is not None and self._failing_mounts > 0:
            self._failing_mounts -= 1
            raise MountError(
                f'MountVolume.SetUp failed for volume "{claim["name"]}" : mount failed: '
                "exit status 32: mount.nfs: Connection timed out"
            )

    def kill_container(
        self, namespace: str, pod: str, container: str | None = None, signal_number: int = 9
    ) -> None:
        """Send a signal to the first process of a container, the first one if none is named."""
        record = self._running(namespace, pod, container)
        assert record.pid is not None
        signal_process(record.pid, signal_number)

    def oom(self, namespace: str, pod: str, container: str | None = None) -> None:
        """Kill a container as the kernel does for want of memory."""
        record = self._running(namespace, pod, container)
        assert record.pid is not None
        record.was_oom = True
        signal_process(record.pid, signal.SIGKILL)

    def evict(self, namespace: str, pod: str, message: str | None = None) -> None:
        """As a kubelet does under pressure: Failed, reason Evicted."""
        text = message or (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 48Mi. "
        )
        self._worker(namespace, pod).queue.put(("stop", Stop(reason="Evicted", message=text)))

    def node_gone(self, node: str, is_deleted: bool = True) -> None:
        """The machine is dead: its pods end at once and nobody tells. `is_deleted`: its Node too,
        as a cloud's controller does."""
        kubelet = self._kubelet
        self._gone.add(node)
        for worker in list(kubelet.workers.values()):
            if worker.node.name == node:
                worker.queue.put(("gone", "node"))
        if is_deleted:
            kubelet.api.delete(f"/api/v1/nodes/{node}")

    def unregister(self) -> None:
        """Take the Node objects away, so that nothing is scheduled here any more."""
        for node in self._kubelet.node_specs:
            self._kubelet.api.delete(f"/api/v1/nodes/{node}")

    def node_not_ready(self, node: str, is_ready: bool = False) -> None:
        set_ready(self._kubelet.api, self._kubelet.node_specs[node], is_ready=is_ready)

    def cut_log_streams(self) -> int:
        return self._kubelet.logs.cut_streams()

    def rotate_logs(self, namespace: str, pod: str, container: str | None = None) -> None:
        record = self._running(namespace, pod, container)
        assert record.keeper is not None
        signal_process(record.keeper, signal.SIGUSR1)

    def delay_pulls(self, delay_s: float) -> None:
        self.pull_delay_s = delay_s

    def fail_mounts(self, number: int) -> None:
        self._failing_mounts = number

    def pod_network(self, node: str, is_up: bool) -> None:
        """Take a node's link to the pod network down, or up again."""
        builder, network = self._kubelet.builder, self._network(node)
        state = "up" if is_up else "down"
        builder.call(lambda: set_link(network.place, "uplink", state=state))

    def fabric_port(self, fabric: str, node: str, is_up: bool) -> None:
        """Take the switch's ports to a node at one fabric down, or up again."""
        network, builder = self._network(node), self._kubelet.builder

        def work() -> None:
            for link in network.links.values():
                if link.fabric.name == fabric:
                    builder.home.netlink.link(
                        "set", index=link.receiving.index, state="up" if is_up else "down"
                    )

        builder.call(work)

    def shape(self, fabric: str, rate_gbps: float | None, node: str | None = None) -> None:
        """Give a fabric another rate, on one node or on all, while pods run."""
        kubelet = self._kubelet

        def work() -> None:
            for name in [node] if node is not None else list(kubelet.node_specs):
                network = kubelet.sandboxes.node(*kubelet.node_place(name))
                links = [network.uplink, *network.links.values()]
                for link in links:
                    if link.fabric.name == fabric:
                        kubelet.builder.shape(link, replace(link.fabric, rate_gbps=rate_gbps))
                kubelet.sandboxes.reshape(network)

        kubelet.builder.call(work)

    def counters(self, fabric: str, node: str) -> dict[str, int]:
        """What has crossed the links of a node at one fabric, all its functions together."""
        network, builder = self._network(node), self._kubelet.builder

        def work() -> dict[str, int]:
            links = [network.uplink, *network.links.values()]
            found = [builder.counters(one) for one in links if one.fabric.name == fabric]
            if not found:
                raise LookupError(f"node {node} has no device at fabric {fabric}")
            return {key: sum(one[key] for one in found) for key in found[0]}

        return builder.call(work)

    def pod(self, namespace: str, pod: str) -> Json:
        """Its address and the first processes of its containers, as the kubelet numbers them."""
        worker = self._worker(namespace, pod)
        return {
            "ip": worker.record.ip,
            "node": worker.node.name,
            "pids": {one.name: one.pid for one in worker.record.records if one.pid is not None},
        }

    def _worker(self, namespace: str, pod: str) -> "PodWorker":
        worker = self._kubelet.find_worker(namespace, pod)
        if worker is None:
            raise LookupError(f"no pod {namespace}/{pod} is on these nodes")
        return worker

    def _running(self, namespace: str, pod: str, container: str | None) -> ContainerRecord:
        records = self._worker(namespace, pod).record.records
        found = [one for one in records if one.is_running and container in (None, one.name)]
        if not found:
            raise LookupError(f"pod {namespace}/{pod} has no running container {container or ''}")
        return found[0]

    def _network(self, node: str) -> Any:
        kubelet = self._kubelet
        return kubelet.builder.call(lambda: kubelet.sandboxes.node(*kubelet.node_place(node)))


def answer(faults: Faults, request: Json) -> Json:
    """One request of the control socket: {"call": name, "arguments": {…}}."""
    name = str(request["call"])
    if name.startswith("_") or not hasattr(faults, name):
        return {"error": f"no request {name}"}
    try:
        return {"result": getattr(faults, name)(**request.get("arguments", {}))}
    except (LookupError, TypeError, RefusedError, OSError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
