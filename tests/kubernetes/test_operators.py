"""Proves tests/kubernetes/cluster: real schemas and real webhooks judge what is sent, strictly."""

import copy
import re
from collections.abc import Callable

import pytest
from tests.kubernetes import samples
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.crds import apply_crds, delete_crds
from tests.kubernetes.cluster.objects import Manifest, Objects
from tests.kubernetes.cluster.operators import OPERATORS, Operators
from tests.kubernetes.cluster.rights import may
from tests.kubernetes.cluster.strict import dry_run
from tests.kubernetes.cluster.waiting import wait_until

pytestmark = pytest.mark.kubernetes

FORBIDDEN = re.compile(
    r'User \\*"([^"\\]+)\\*" cannot (\w+) resource \\*"([^"\\]+)\\*" '
    r'in API group \\*"([^"\\]*)\\*"(?: in the namespace \\*"([^"\\]+))?'
)
"""Who may not do what, as an API server says it and a log quotes it."""
EVERY = (
    samples.pytorch_job,
    samples.job_set,
    samples.train_job,
    samples.queued_job,
    samples.local_queue,
    samples.pod_group,
    samples.network_attachment,
    samples.sriov_network,
    samples.ip_pool,
)


@pytest.mark.parametrize("sample", EVERY, ids=lambda sample: sample.__name__)
def test_a_right_manifest_passes_and_a_misspelt_field_is_named(
    control_plane: ControlPlane,
    operators: Operators,
    namespace: str,
    sample: Callable[[str], Manifest],
) -> None:
    right = sample(namespace)
    assert dry_run(control_plane, [right]) == []
    wrong = copy.deepcopy(right)
    wrong["spec"]["misspelt"] = 1
    (refusal,) = dry_run(control_plane, [wrong])
    assert refusal.startswith(f"{right['kind']} sample-")
    assert 'unknown field "spec.misspelt"' in refusal


def test_a_misspelt_field_deep_inside_is_named_with_its_path(
    control_plane: ControlPlane, operators: Operators, namespace: str
) -> None:
    job = samples.pytorch_job(namespace)
    template = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    template["volumes"] = [{"name": "shm", "emptydir": {}}]
    (refusal,) = dry_run(control_plane, [job])
    path = "spec.pytorchReplicaSpecs.Master.template.spec.volumes[0].emptydir"
    assert f'unknown field "{path}"' in refusal


def test_a_kind_that_is_not_installed_is_refused(
    control_plane: ControlPlane, namespace: str
) -> None:
    deleted = apply_crds(control_plane, ["volcano"])
    delete_crds(control_plane, deleted)
    try:
        (refusal,) = dry_run(control_plane, [samples.pod_group(namespace)])
        assert "has no PodGroup of scheduling.volcano.sh/v1beta1" in refusal
    finally:
        apply_crds(control_plane, ["volcano"])


def test_the_webhook_of_the_training_operator_wants_its_container_name(
    control_plane: ControlPlane, operators: Operators, namespace: str
) -> None:
    (refusal,) = dry_run(control_plane, [samples.pytorch_job(namespace, container="main")])
    assert "validator.pytorchjob.training-operator.kubeflow.org" in refusal
    assert "must have at least one container with name pytorch" in refusal


def test_the_webhook_of_the_trainer_looks_for_the_runtime(
    control_plane: ControlPlane, operators: Operators, namespace: str
) -> None:
    (refusal,) = dry_run(control_plane, [samples.train_job(namespace, runtime="missing")])
    assert "validator.trainjob.trainer.kubeflow.org" in refusal


def test_a_training_operator_that_ended_refuses_jobs_until_it_is_back(
    control_plane: ControlPlane, operators: Operators, namespace: str
) -> None:
    operators.end("training-operator")
    (refusal,) = dry_run(control_plane, [samples.pytorch_job(namespace)])
    assert "failed calling webhook" in refusal
    operators.start("training-operator")
    assert dry_run(control_plane, [samples.pytorch_job(namespace)]) == []


@pytest.mark.parametrize(
    ("sample", "num_pods"),
    [(samples.pytorch_job, 2), (samples.job_set, 2), (samples.train_job, 2)],
    ids=["PyTorchJob", "JobSet", "TrainJob"],
)
def test_operators_make_pods_of_jobs(
    control_plane: ControlPlane,
    operators: Operators,
    namespace: str,
    sample: Callable[[str], Manifest],
    num_pods: int,
) -> None:
    with control_plane.http() as http:
        Objects(http).apply(sample(namespace))

        def has_pods() -> bool:
            found = http.get(f"/api/v1/namespaces/{namespace}/pods").json()["items"]
            return len(found) == num_pods

        wait_until(has_pods, limit_s=60, what=f"{num_pods} pods of the job")


def test_all_operators_run_with_the_rights_of_their_releases(
    control_plane: ControlPlane, operators: Operators
) -> None:
    for name in OPERATORS:
        process = control_plane.processes[name]
        assert process.popen.poll() is None
        refused = {found.groups("") for found in FORBIDDEN.finditer(process.log.read_text())}
        # An API server that has just been started again may refuse what it has not read yet.
        lacking = [each for each in sorted(refused) if not is_allowed(control_plane, each)]
        assert lacking == [], name


def is_allowed(control_plane: ControlPlane, asked_for: tuple[str, ...]) -> bool:
    """Does the API server, asked again, let this user do that?"""
    user, verb, resource, group, namespace = asked_for
    asked = {"verb": verb, "resource": resource, "group": group, "namespace": namespace}
    with control_plane.http() as http:
        return may(http, user, asked)


def test_a_right_that_an_operator_lacks_is_found(control_plane: ControlPlane) -> None:
    line = (
        r'"error": "nodes is forbidden: User \"system:serviceaccount:a:b\" cannot watch '
        r'resource \"nodes\" in API group \"\" at the cluster scope"}'
    )
    (found,) = FORBIDDEN.finditer(line)
    assert found.groups() == ("system:serviceaccount:a:b", "watch", "nodes", "", None)
    assert not is_allowed(control_plane, found.groups())
