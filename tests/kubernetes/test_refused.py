"""Does a run say before anything is made what a real API server would refuse, all at once? As a
service account; no node is needed."""

from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.runs import User

from broadgauge.specs.errors import ExitCode

pytestmark = pytest.mark.kubernetes

RBAC = "rbac.authorization.k8s.io"
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
"""In a namespace; nothing of the cluster's."""
POD = {"name": "pod", "kubernetes": "pod"}


@pytest.fixture
def applicant(
    scratch: Scratch, control_plane: ControlPlane, network_kinds: None, tmp_path: Path
) -> User:
    """Without a right yet."""
    return User(scratch, control_plane, tmp_path)


def allow(user: User, *rules: dict[str, Any]) -> None:
    about = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": "more"}}
    user.scratch.create(about | {"kind": "Role", "rules": list(rules)})
    role = {"apiGroup": RBAC, "kind": "Role", "name": "more"}
    bound = {"roleRef": role, "subjects": [user.subject]}
    user.scratch.create(about | {"kind": "RoleBinding", **bound})


def refused(user: User, *words: str) -> str:
    output = user.run(*words, exit_code=ExitCode.PLATFORM_REFUSED)
    assert "Traceback" not in output
    assert user.left() == []
    return output


def test_who_may_nothing_is_told_every_right_that_is_missing(applicant: User) -> None:
    applicant.write()
    output = refused(applicant)
    space = applicant.namespace
    assert f"you may not create, delete, list, patch configmaps in namespace {space}" in output
    for words in ("secrets", "pods/log", "jobs.batch", "`broadgauge render EXPERIMENT --rbac"):
        assert words in output, output


def test_one_right_that_was_taken_away_is_the_one_that_is_named(applicant: User) -> None:
    applicant.write()
    applicant.give_rights(but=("watch", "pods"))
    output = refused(applicant)
    assert f"your rights: you may not watch pods in namespace {applicant.namespace}" in output


def test_all_that_is_wrong_is_said_at_once(applicant: User) -> None:
    """Names that are nobody's, and a quota."""
    quota = {"hard": {"count/configmaps": "1"}}  # there is one in each namespace
    about = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    applicant.scratch.create(about | {"spec": quota})
    existing = {"attachment": "existing", "definitions": ["not-there"]}
    applicant.write(
        networks=[POD, {"name": "roce", "kubernetes": existing}],
        kubernetes={"volumes": [{"name": "data", "mount": "/data"}], "service_account": "gone"},
    )
    allow(applicant, EVERYTHING)
    output = refused(applicant)
    for words in (
        "networks.roce.kubernetes.definitions: there is no NetworkAttachmentDefinition not-there",
        "kubernetes.volumes.data: there is no PersistentVolumeClaim data",
        "kubernetes.service_account: there is no ServiceAccount gone",
        "making it: a quota is used up",
        "nothing was made",
    ):
        assert words in output, output


@pytest.mark.parametrize("who", ["LimitRange", "Pod Security"])
def test_what_judges_pods_is_asked_before_their_job_is_made(applicant: User, who: str) -> None:
    """A job would be taken, and wait for pods that are never made."""
    scratch = applicant.scratch
    if who == "LimitRange":
        limits = [{"type": "Container", "max": {"memory": "1Mi"}}]
        about = {"apiVersion": "v1", "kind": who, "metadata": {"name": "small"}}
        scratch.create(about | {"spec": {"limits": limits}})
        applicant.write(kubernetes={"memory_bytes": "2 GiB"})
        words = "maximum memory usage per Container is 1Mi"
    else:
        label = {"pod-security.kubernetes.io/enforce": "restricted"}
        about = {"name": applicant.namespace, "labels": label}
        scratch.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": about})
        applicant.write(kubernetes={"run_as_user": 0})
        words = 'violates PodSecurity "restricted:latest"'
    allow(applicant, EVERYTHING)
    output = refused(applicant)
    assert "its pods: making one: " in output
    assert words in output, output


def test_a_namespace_that_is_not_there_is_said_before_anything_else(applicant: User) -> None:
    """To whoever may look at it; to others each right in it is missing."""
    applicant.write(kubernetes={"namespace": "nowhere"})
    reader = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}
    about = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": applicant.namespace}}
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": applicant.namespace}
    bound = {"roleRef": role, "subjects": [applicant.subject]}
    applicant.scratch.api.create(about | {"kind": "ClusterRole", "rules": [reader]})
    applicant.scratch.api.create(about | {"kind": "ClusterRoleBinding", **bound})
    output = refused(applicant)
    assert "kubernetes.namespace: there is no namespace nowhere" in output
    assert "your rights" not in output
