"""Does a pod on the process kubelet see what it would on a real one?"""

import json
from typing import Any

import pytest
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import NodeSpec, Storage
from tests.kubernetes.pods import Pods, pod_manifest

pytestmark = [pytest.mark.kubernetes, pytest.mark.root, pytest.mark.namespaces]
RESOURCES = {"cpu": "8", "nvidia.com/gpu": "1"}
NODES = {
    "nodes": [
        NodeSpec(name="kub-0", resources=RESOURCES),
        NodeSpec(name="kub-1", resources=RESOURCES, cores=(0,)),
    ],
    "storage": Storage(),
}


def field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def test_the_environment_is_of_values_fields_resources_config_maps_and_secrets(pods: Pods) -> None:
    pods.config_map("settings", RATE="10", _dot_hidden="x")
    pods.config_map("token", kind="Secret", HF_TOKEN="se=cret")
    said = pods.run(
        pod_manifest(
            "env",
            "env | sort; hostname; echo args $0 $1",
            labels={"job": "a"},
            annotations={"place/of": "b"},
            main_args=["$(GREETING)", "$$(GREETING)"],
            main_resources={"limits": {"memory": "64Mi", "cpu": "1500m"}},
            main_envFrom=[{"configMapRef": {"name": "settings"}, "prefix": "SET_"}],
            main_env=[
                {"name": "WHO", "value": "world"},
                {"name": "GREETING", "value": "hello $(WHO) $(NOBODY)"},
                field("NODE", "spec.nodeName"),
                field("LABEL", "metadata.labels['job']"),
                field("NOTE", "metadata.annotations['place/of']"),
                field("ADDRESS", "status.podIP"),
                {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "token",
                                                                  "key": "HF_TOKEN"}}},
                {"name": "NONE", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "a",
                                                                   "optional": True}}},
                {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                {"name": "MIB", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory",
                                                                   "divisor": "1Mi"}}},
            ],
        )
    )  # fmt: skip
    lines = said.splitlines()
    status = pods.get("env")["status"]
    for expected in (
        "SET_RATE=10", "GREETING=hello world $(NOBODY)", "LABEL=a", "NOTE=b", "SECRET=se=cret",
        "CPU=2", "MIB=64", f"ADDRESS={status['podIP']}", "HOSTNAME=env", "env",
        "args hello world $(NOBODY) $(GREETING)",
    ):  # fmt: skip
        assert expected in lines
    assert any(line.startswith("NODE=kub-") for line in lines)
    assert not any(line.startswith("NONE=") for line in lines)


def test_a_missing_reference_is_a_config_error_until_it_is_there(pods: Pods) -> None:
    reference = {"secretKeyRef": {"name": "later", "key": "k"}}
    pods.apply(
        pod_manifest("waits", "echo got $K", main_env=[{"name": "K", "valueFrom": reference}])
    )
    assert pods.wait_reason("waits", "CreateContainerConfigError") == 'secret "later" not found'
    pods.config_map("later", kind="Secret", k="it")
    pods.wait_end("waits")
    assert pods.log("waits") == "got it\n"


def test_volumes_are_mounted_and_config_maps_change_while_it_runs(pods: Pods) -> None:
    pods.config_map("script", run_dot_sh="echo first", other="x")
    pods.apply(
        pod_manifest(
            "volumes",
            "ls -A /etc/run /nested/deep; until grep second /etc/run/go.sh; do sleep 0.05; done;"
            "df -m /dev/shm | tail -1 | awk '{print $2}'; cat /pod/notes; touch /nested/a;"
            "touch /etc/run/go.sh || echo read-only; cat /one",
            labels={"colour": "red"},
            volumes=[
                {"name": "script", "configMap": {"name": "script", "items": [
                    {"key": "run.sh", "path": "go.sh"}]}},
                {"name": "all", "configMap": {"name": "script"}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
                {"name": "empty", "emptyDir": {}},
                {"name": "pod", "downwardAPI": {"items": [
                    {"path": "notes", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            ],
            main_volumeMounts=[
                {"name": "script", "mountPath": "/etc/run"},
                {"name": "all", "mountPath": "/one", "subPath": "other"},
                {"name": "shm", "mountPath": "/dev/shm"},
                {"name": "empty", "mountPath": "/nested"},
                {"name": "all", "mountPath": "/nested/deep"},
                {"name": "pod", "mountPath": "/pod"},
            ],
        )
    )  # fmt: skip
    pods.wait_log("volumes", "run.sh")
    pods.config_map("script", run_dot_sh="echo second", other="y")
    pods.wait_end("volumes")
    said = pods.log("volumes")
    for expected in ("go.sh", "..data", "echo second", "\n16\n", 'colour="red"', "read-only"):
        assert expected in said
    assert said.endswith("x"), "a subPath is not updated"


def test_what_a_container_writes_outside_its_volumes_stays_in_it(pods: Pods) -> None:
    pods.run(pod_manifest("writes", "mkdir /never && echo a > /etc/hostname && rm /bin/sh"))
    assert pods.run(pod_manifest("after", "test ! -e /never && echo clean")) == "clean\n"


def test_a_claim_is_provisioned_bound_and_shared_by_pods(pods: Pods, kubelet: Kubelet) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "folder",
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    pods.apply(claim)
    mounted: dict[str, Any] = {
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "main_volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "runs"}],
    }
    kubelet.fail_mounts(1)
    pods.apply(pod_manifest("writer", "echo kept > /data/file", nodeName="kub-0", **mounted))
    assert "mount failed" in pods.wait_event("writer", "FailedMount")
    pods.wait_end("writer")
    assert (
        pods.run(pod_manifest("reader", "cat /data/file", nodeName="kub-1", **mounted)) == "kept\n"
    )


def test_users_groups_and_capabilities_are_what_the_security_context_says(pods: Pods) -> None:
    show = "id; grep -E 'Cap(Eff|Bnd)|NoNew' /proc/self/status; touch /x && echo wrote; ulimit -l"
    said = pods.run(
        pod_manifest(
            "strict", show + "; ls -ld /data | cut -d' ' -f1,4",
            securityContext={"runAsNonRoot": True, "runAsUser": 1_000_680_000, "fsGroup": 4321,
                             "seccompProfile": {"type": "RuntimeDefault"}},
            volumes=[{"name": "data", "emptyDir": {}}],
            main_volumeMounts=[{"name": "data", "mountPath": "/data"}],
            main_securityContext={"allowPrivilegeEscalation": False,
                                  "capabilities": {"drop": ["ALL"]}},
        )
    )  # fmt: skip
    assert "uid=1000680000 gid=0(root) groups=0(root),4321" in said
    for expected in ("CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1",
                     "drwxrwsrwx 4321", "8192"):  # fmt: skip
        assert expected in said
    assert "wrote" not in said
    root = pods.run(pod_manifest("root", show, main_securityContext={
        "capabilities": {"add": ["NET_ADMIN"], "drop": ["MKNOD"]}}))  # fmt: skip
    # containerd's fourteen, without MKNOD (27) and with NET_ADMIN (12).
    assert f"CapEff:\t{0xA80425FB & ~(1 << 27) | 1 << 12:016x}" in root
    assert "wrote" in root
    pods.apply(pod_manifest("no-root", "true", securityContext={"runAsNonRoot": True}))
    message = pods.wait_reason("no-root", "CreateContainerConfigError")
    assert "container has runAsNonRoot and image will run as root" in message


def test_a_read_only_root_is_read_only(pods: Pods) -> None:
    said = pods.run(
        pod_manifest("sealed", "touch /x || echo sealed",
                     main_securityContext={"readOnlyRootFilesystem": True})
    )  # fmt: skip
    assert "sealed" in said.splitlines()


def test_names_of_services_and_host_names_resolve(pods: Pods) -> None:
    pods.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "ring"},
            "spec": {"clusterIP": "None", "selector": {"app": "ring"}, "ports": [{"port": 1}]},
        }
    )
    pods.apply(pod_manifest("server", "sleep 3600", labels={"app": "ring"}, hostname="one",
                            subdomain="ring"))  # fmt: skip
    names = ("ring", f"ring.{pods.namespace}.svc", f"one.ring.{pods.namespace}.svc.cluster.local")
    asks = "; ".join(f"getent ahostsv4 {name} | head -1" for name in names)
    said = pods.run(pod_manifest("asker", f"{asks}; nslookup ring > /dev/null && echo found;"
                                 "getent hosts nobody || echo unknown"))  # fmt: skip
    ip = pods.get("server")["status"]["podIP"]
    assert [line.split()[0] for line in said.splitlines()] == [ip] * 3 + ["found", "unknown"]


def test_the_status_of_networks_is_in_the_pod_and_in_its_files(pods: Pods) -> None:
    said = pods.run(
        pod_manifest(
            # The file is refreshed once the status is there, as by a real kubelet.
            "plain", "until grep -q . /pod/annotations; do sleep 0.1; done; cat /pod/annotations",
            volumes=[{"name": "pod", "downwardAPI": {"items": [
                {"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}}]}}],
            main_volumeMounts=[{"name": "pod", "mountPath": "/pod"}],
        )
    )  # fmt: skip
    assert said.startswith('k8s.v1.cni.cncf.io/network-status="[\\n')
    annotation = pods.get("plain")["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"]
    (only,) = json.loads(annotation)
    assert only["interface"] == "eth0"
    assert only["default"] is True
    assert only["ips"] == [pods.get("plain")["status"]["podIP"]]


def test_a_node_has_its_cores_and_its_own_network(pods: Pods) -> None:
    cores = "python -c 'import os; print(os.sched_getaffinity(0))'"
    host = {"nodeName": "kub-1", "hostNetwork": True}
    said = pods.run(pod_manifest("host", f"{cores}; hostname; ip -4 -o address show eth0", **host))
    ip = pods.get("host")["status"]["podIP"]
    assert said.splitlines()[:2] == ["{0}", "kub-1"]
    assert f"inet {ip}/16" in said


def test_extended_resources_keep_a_pod_pending_when_they_are_taken(pods: Pods) -> None:
    gpu = {"limits": {"nvidia.com/gpu": "1"}}
    for number in range(3):
        pods.apply(pod_manifest(f"gpu-{number}", "sleep 3600", main_resources=gpu))
    message = ""
    for number in range(3):
        wait_until(
            lambda number=number: (
                pods.phase(f"gpu-{number}") == "Running"
                or bool(pods.get(f"gpu-{number}")["status"].get("conditions"))
            ),
            "the scheduler",
        )
    pending = [n for n in range(3) if "nodeName" not in pods.get(f"gpu-{n}")["spec"]]
    message = pods.wait_event(f"gpu-{pending[0]}", "FailedScheduling")
    assert len(pending) == 1
    assert "Insufficient nvidia.com/gpu" in message
