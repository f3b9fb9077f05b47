"""Proves tests/kubernetes/cluster/operators.py: the webhooks judge for real."""

import pytest
from tests.kubernetes import samples
from tests.kubernetes.cluster.api import RefusedError
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.cluster.waiting import wait_until

pytestmark = [pytest.mark.kubernetes, pytest.mark.usefixtures("operators")]


def test_a_job_set_passes_with_the_webhooks_defaults(scratch: Scratch) -> None:
    accepted = scratch.create(samples.job_set(), dry_run=True)["spec"]
    assert accepted["replicatedJobs"][0]["template"]["spec"]["completionMode"] == "Indexed"
    assert accepted["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}


def test_a_job_set_is_refused_for_what_only_the_webhook_knows(scratch: Scratch) -> None:
    with pytest.raises(RefusedError) as refused:
        scratch.create(samples.refused_job_set(), dry_run=True)
    assert (refused.value.status, refused.value.reason) == (422, "Invalid")
    assert 'admission webhook "vjobset.kb.io" denied the request' in refused.value.message
    assert "DependsOn can't be set for the first ReplicatedJob" in refused.value.message


def test_a_misspelt_field_of_a_job_set_is_refused_by_its_path(scratch: Scratch) -> None:
    manifest = samples.job_set()
    manifest["spec"]["replicatedJobs"][0]["replica"] = 1
    with pytest.raises(RefusedError, match=r'unknown field "spec\.replicatedJobs\[0\]\.replica"'):
        scratch.create(manifest, dry_run=True)


def test_a_train_job_is_refused_before_its_runtime_is_stored(scratch: Scratch) -> None:
    with pytest.raises(RefusedError) as refused:
        scratch.create(samples.train_job(), dry_run=True)
    assert refused.value.status == 403
    webhook = 'admission webhook "validator.trainjob.trainer.kubeflow.org" denied the request'
    assert webhook in refused.value.message
    assert "trainingRuntime must be created before the TrainJob" in refused.value.message


def test_a_runtime_and_its_train_job_pass_together(scratch: Scratch) -> None:
    runtime, job = scratch.dry_run(samples.training_runtime(), samples.patched_train_job())
    (jobs,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    (before,) = jobs["template"]["spec"]["template"]["spec"]["initContainers"]
    assert before["name"] == "before"
    limits = {"nvidia.com/gpu": "8", "rdma/roce": "1"}
    assert job["spec"]["trainer"]["resourcesPerNode"]["limits"] == limits
    assert "time" in job["spec"]["runtimePatches"][0]
    assert scratch.read(samples.train_job()) is None


def test_a_misspelt_field_of_a_train_job_is_refused_by_its_path(scratch: Scratch) -> None:
    manifest = samples.train_job()
    manifest["spec"]["trainer"]["numProcsPerNode"] = 8
    with pytest.raises(RefusedError, match=r'unknown field "spec\.trainer\.numProcsPerNode"'):
        scratch.dry_run(samples.training_runtime(), manifest)


def test_a_misspelt_field_of_a_runtime_is_refused_by_its_path(scratch: Scratch) -> None:
    manifest = samples.training_runtime()
    (jobs,) = manifest["spec"]["template"]["spec"]["replicatedJobs"]
    jobs["template"]["spec"]["template"]["spec"]["initContainer"] = []
    path = r"spec\.template\.spec\.replicatedJobs\[0\]\.template\.spec\.template\.spec"
    with pytest.raises(RefusedError, match=rf'unknown field "{path}\.initContainer"'):
        scratch.dry_run(manifest, samples.train_job())


def test_a_runtime_without_the_container_of_the_training_is_refused(scratch: Scratch) -> None:
    with pytest.raises(RefusedError, match="must contain the required container") as refused:
        scratch.create(samples.training_runtime(container="pytorch"), dry_run=True)
    assert '"validator.trainingruntime.trainer.kubeflow.org" denied' in refused.value.message


def test_a_train_job_becomes_pods(scratch: Scratch) -> None:
    """TrainJob, JobSet, Job, pods: each of another controller."""
    scratch.dry_run(samples.training_runtime(), samples.train_job())
    scratch.create(samples.train_job())
    name = samples.train_job()["metadata"]["name"]
    labels = f"jobset.sigs.k8s.io/jobset-name={name}"
    wait_until(lambda: len(scratch.find("v1", "Pod", labels)) == 2, "the two pods")
    assert len(scratch.find("jobset.x-k8s.io/v1alpha2", "JobSet")) == 1
    assert len(scratch.find("batch/v1", "Job", labels)) == 1
    for pod in scratch.find("v1", "Pod", labels):
        assert pod["status"]["phase"] == "Pending"
        assert [each["name"] for each in pod["spec"]["initContainers"]] == ["before"]
        (node,) = pod["spec"]["containers"]
        assert node["resources"]["limits"]["rdma/roce"] == "1"
        variables = {each["name"]: each.get("value") for each in node["env"]}
        assert variables["PET_NNODES"] == "2"
        assert variables["PET_NPROC_PER_NODE"] == "8"


def test_a_pytorch_job_passes(scratch: Scratch) -> None:
    accepted = scratch.create(samples.pytorch_job(), dry_run=True)
    assert accepted["spec"]["nprocPerNode"] == "2"


def test_a_misspelt_field_of_a_pytorch_job_is_refused_by_its_path(scratch: Scratch) -> None:
    manifest = samples.pytorch_job()
    manifest["spec"]["nprocsPerNode"] = "2"
    with pytest.raises(RefusedError, match=r'unknown field "spec\.nprocsPerNode"'):
        scratch.create(manifest, dry_run=True)


def test_a_pytorch_job_without_a_container_of_that_name_is_refused(scratch: Scratch) -> None:
    with pytest.raises(RefusedError) as refused:
        scratch.create(samples.pytorch_job(container="node"), dry_run=True)
    webhook = 'admission webhook "validator.pytorchjob.training-operator.kubeflow.org" denied'
    assert webhook in refused.value.message
    assert "must have at least one container with name pytorch" in refused.value.message


def test_a_pytorch_job_becomes_pods_and_services(scratch: Scratch) -> None:
    scratch.create(samples.pytorch_job())
    names = ["sample-pytorchjob-master-0", "sample-pytorchjob-worker-0"]
    for kind in ("Pod", "Service"):
        wait_until(
            lambda kind=kind: (
                sorted(each["metadata"]["name"] for each in scratch.find("v1", kind)) == names
            ),
            f"a {kind} of each",
        )
    (worker,) = (pod for pod in scratch.find("v1", "Pod") if pod["metadata"]["name"] == names[1])
    assert [each["name"] for each in worker["spec"]["initContainers"]] == ["init-pytorch"]
    variables = {each["name"]: each.get("value") for each in worker["spec"]["containers"][0]["env"]}
    assert (variables["MASTER_ADDR"], variables["WORLD_SIZE"]) == (names[0], "4")


def test_each_trainer_knows_the_fields_of_its_own_release(
    scratch: Scratch, older_trainer: Scratch
) -> None:
    older_trainer.create(samples.older_train_job(), dry_run=True)
    with pytest.raises(RefusedError, match=r'unknown field "spec\.runtimePatches"'):
        older_trainer.create(samples.patched_train_job(), dry_run=True)
    with pytest.raises(RefusedError, match=r'unknown field "spec\.podTemplateOverrides"'):
        scratch.create(samples.older_train_job(), dry_run=True)
