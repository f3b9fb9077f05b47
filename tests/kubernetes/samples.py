"""A right manifest of each kind that the tests' cluster has: small, for tests to change."""

from tests.kubernetes.cluster.objects import Manifest


def pod_template(container: str = "worker") -> Manifest:
    shell = {"name": container, "image": "none", "command": ["sh", "-c", "exit 0"]}
    return {"spec": {"restartPolicy": "Never", "containers": [shell]}}


def _manifest(version: str, kind: str, namespace: str | None, **content: object) -> Manifest:
    metadata = {"name": f"sample-{kind.lower()}"}
    if namespace is not None:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


def pytorch_job(namespace: str, *, container: str = "pytorch", workers: int = 1) -> Manifest:
    master = {"replicas": 1, "restartPolicy": "Never", "template": pod_template(container)}
    replicas = {"Master": master, "Worker": master | {"replicas": workers}}
    spec = {"nprocPerNode": "2", "pytorchReplicaSpecs": replicas}
    return _manifest("kubeflow.org/v1", "PyTorchJob", namespace, spec=spec)


def job_set(namespace: str, *, pods: int = 2) -> Manifest:
    job = {"parallelism": pods, "completions": pods, "template": pod_template()}
    spec = {"replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}]}
    return _manifest("jobset.x-k8s.io/v1alpha2", "JobSet", namespace, spec=spec)


def train_job(namespace: str, *, runtime: str = "torch-distributed") -> Manifest:
    """Of the runtime that comes with the trainer."""
    trainer = {"numNodes": 2, "image": "none", "command": ["sh", "-c", "exit 0"]}
    spec = {"runtimeRef": {"name": runtime}, "trainer": trainer}
    return _manifest("trainer.kubeflow.org/v1alpha1", "TrainJob", namespace, spec=spec)


def queued_job(namespace: str) -> Manifest:
    """A batch Job that asks Kueue for its place."""
    job = _manifest("batch/v1", "Job", namespace)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "sample-localqueue"}
    return job | {"spec": {"suspend": True, "template": pod_template()}}


def local_queue(namespace: str) -> Manifest:
    spec = {"clusterQueue": "sample"}
    return _manifest("kueue.x-k8s.io/v1beta1", "LocalQueue", namespace, spec=spec)


def pod_group(namespace: str) -> Manifest:
    """Volcano's."""
    spec = {"minMember": 2, "queue": "default"}
    return _manifest("scheduling.volcano.sh/v1beta1", "PodGroup", namespace, spec=spec)


def network_attachment(namespace: str) -> Manifest:
    config = '{"cniVersion": "1.0.0", "name": "rail0", "type": "macvlan", "master": "ens1"}'
    version = "k8s.cni.cncf.io/v1"
    kind = "NetworkAttachmentDefinition"
    return _manifest(version, kind, namespace, spec={"config": config})


def sriov_network(namespace: str) -> Manifest:
    spec = {"resourceName": "rail0", "networkNamespace": namespace, "vlan": 0}
    return _manifest("sriovnetwork.openshift.io/v1", "SriovNetwork", namespace, spec=spec)


def ip_pool(namespace: str) -> Manifest:
    """Whereabouts'."""
    spec = {"range": "192.168.1.0/24", "allocations": {}}
    return _manifest("whereabouts.cni.cncf.io/v1alpha1", "IPPool", namespace, spec=spec)
