"""A right manifest of each kind that the tests' cluster has: small, for tests to change."""

import json

from tests.kubernetes.cluster.api import Manifest


def pod_template(container: str = "worker") -> Manifest:
    shell = {"name": container, "image": "none", "command": ["sh", "-c", "exit 0"]}
    return {"spec": {"restartPolicy": "Never", "containers": [shell]}}


def job(pods: int = 2) -> Manifest:
    """An indexed Job."""
    spec = {
        "completionMode": "Indexed",
        "parallelism": pods,
        "completions": pods,
        "template": pod_template(),
    }
    return _manifest("batch/v1", "Job", spec)


def job_set(pods: int = 2) -> Manifest:
    group = {"parallelism": pods, "completions": pods, "template": pod_template()}
    spec = {"replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": group}}]}
    return _manifest("jobset.x-k8s.io/v1alpha2", "JobSet", spec)


def refused_job_set() -> Manifest:
    """Of a right schema, but its first jobs wait for others: only the webhook looks at that."""
    manifest = job_set()
    (jobs,) = manifest["spec"]["replicatedJobs"]
    jobs["dependsOn"] = [{"name": "other", "status": "Ready"}]
    return manifest


def pytorch_job(*, container: str = "pytorch") -> Manifest:
    """A master and a worker."""
    replicas = {"replicas": 1, "restartPolicy": "Never", "template": pod_template(container)}
    spec = {"nprocPerNode": "2", "pytorchReplicaSpecs": {"Master": replicas, "Worker": replicas}}
    return _manifest("kubeflow.org/v1", "PyTorchJob", spec)


def training_runtime(*, container: str = "node", kind: str = "TrainingRuntime") -> Manifest:
    """With an init container, which no patch of a TrainJob could add."""
    template = pod_template(container)
    (shell,) = template["spec"]["containers"]
    template["spec"]["initContainers"] = [shell | {"name": "before"}]
    step = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    jobs = {"metadata": {"labels": step}, "spec": {"template": template}}
    spec = {
        "mlPolicy": {"numNodes": 1, "torch": {}},
        "template": {"spec": {"replicatedJobs": [{"name": "node", "template": jobs}]}},
    }
    return _manifest("trainer.kubeflow.org/v1alpha1", kind, spec)


def train_job(*, runtime: str = "sample-trainingruntime") -> Manifest:
    """Of two nodes, with the namespaced runtime of this name."""
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": runtime}
    resources = {"limits": {"nvidia.com/gpu": 8, "rdma/roce": 1}}
    spec = {
        "runtimeRef": reference,
        "trainer": {"numNodes": 2, "numProcPerNode": 8, "resourcesPerNode": resources},
    }
    return _manifest("trainer.kubeflow.org/v1alpha1", "TrainJob", spec)


def older_train_job() -> Manifest:
    """Of Trainer 2.1: processes by a word, and overrides in the place of patches."""
    manifest = train_job()
    manifest["spec"]["trainer"]["numProcPerNode"] = "auto"
    override = {"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"a": "b"}}}
    manifest["spec"]["podTemplateOverrides"] = [override]
    return manifest


def patched_train_job() -> Manifest:
    """The webhook writes down when each patch came."""
    manifest = train_job()
    labelled = {"template": {"metadata": {"labels": {"a": "b"}}}}
    patch = {"manager": "tests.broadgauge.example/samples", "trainingRuntimeSpec": labelled}
    manifest["spec"]["runtimePatches"] = [patch]
    return manifest


def network_attachment() -> Manifest:
    """Its configuration is text, into which no schema looks."""
    plugin = {"cniVersion": "1.0.0", "name": "rail-0", "type": "host-device", "device": "ens8"}
    spec = {"config": json.dumps(plugin)}
    return _manifest("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", spec)


def ip_pool() -> Manifest:
    """One address is taken: the second of the range, by its place in it."""
    taken = {"id": "0", "ifname": "net1", "podref": "default/worker-0"}
    spec = {"range": "192.168.10.0/24", "allocations": {"1": taken}}
    return _manifest("whereabouts.cni.cncf.io/v1alpha1", "IPPool", spec)


def sriov_network() -> Manifest:
    spec = {"resourceName": "rail0", "networkNamespace": "default", "spoofChk": "on"}
    return _manifest("sriovnetwork.openshift.io/v1", "SriovNetwork", spec)


def sriov_policy() -> Manifest:
    """Virtual functions for RDMA."""
    spec = {
        "resourceName": "rail0",
        "nodeSelector": {"gpu": "h100"},
        "nicSelector": {"pfNames": ["ens8f0"]},
        "numVfs": 8,
        "isRdma": True,
    }
    return _manifest("sriovnetwork.openshift.io/v1", "SriovNetworkNodePolicy", spec)


def _manifest(version: str, kind: str, spec: Manifest) -> Manifest:
    metadata = {"name": f"sample-{kind.lower()}"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
