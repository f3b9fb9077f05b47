"""When does a user have the rights that were just given? The server hears of roles by a watch."""

from collections.abc import Iterable, Iterator
from typing import Any

import httpx2
from tests.kubernetes.cluster.objects import Manifest, Objects
from tests.kubernetes.cluster.waiting import wait_until

_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def give_rights(http: httpx2.Client, objects: Iterable[Manifest], user: str) -> None:
    """Applies roles and their bindings to this user, and waits until they hold."""
    applied = list(objects)
    for each in applied:
        Objects(http).apply(each)
    for attributes in _last_rights(applied):
        wait_until(
            lambda attributes=attributes: may(http, user, attributes),
            limit_s=60,
            what=f"{user} to have {attributes}",
        )


def may(http: httpx2.Client, user: str, attributes: dict[str, str]) -> bool:
    """Does the API server let this user do that now?"""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": attributes},
    }
    return bool(http.post(_REVIEWS, json=review).raise_for_status().json()["status"]["allowed"])


def _last_rights(objects: list[Manifest]) -> Iterator[dict[str, str]]:
    """One of each role: all of a role are known at once."""
    for role in (each for each in objects if each["kind"] in ("Role", "ClusterRole")):
        rule: dict[str, Any] = role["rules"][-1]
        plural, _, part = rule["resources"][-1].partition("/")
        found = {"verb": rule["verbs"][-1], "group": rule["apiGroups"][-1], "resource": plural}
        found |= {"subresource": part} if part else {}
        namespace = role["metadata"].get("namespace")
        yield found | ({"namespace": namespace} if namespace else {})
