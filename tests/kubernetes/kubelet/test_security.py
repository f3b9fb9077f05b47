"""Proves security.py: as whom a container runs, by its context, its image and OpenShift's range."""

from typing import Any

import pytest
from tests.kubernetes.kubelet.config import Image
from tests.kubernetes.kubelet.environment import ConfigError
from tests.kubernetes.kubelet.security import (
    CAPABILITIES,
    DEFAULT_CAPABILITIES,
    Identity,
    fs_group,
    identity,
)

Json = dict[str, Any]
RANDOM_UID = 1_000_680_000
OPENSHIFT = {"metadata": {"annotations": {"openshift.io/sa.scc.uid-range": f"{RANDOM_UID}/10000"}}}


def who(
    own: Json | None = None, shared: Json | None = None, *, namespace: Json | None = None,
    user: int = 0,
) -> Identity:  # fmt: skip
    pod = {
        "metadata": {"name": "p", "namespace": "team", "uid": "u"},
        "spec": {"securityContext": shared},
    }
    return identity({"name": "main", "securityContext": own}, pod, namespace, Image(user=user))


def names(found: Identity) -> set[str]:
    numbers = {number: name for name, number in CAPABILITIES.items()}
    return {numbers[number] for number in found.capabilities}


@pytest.mark.parametrize(
    ("found", "uid"),
    [
        (who(), 0),
        (who(user=1000), 1000),
        (who(namespace=OPENSHIFT, user=1000), RANDOM_UID),
        (who({"runAsUser": 5}, {"runAsUser": 6}, namespace=OPENSHIFT), 5),
        (who({}, {"runAsUser": 6}), 6),
        (who({"runAsUser": 0}, {"runAsUser": 6}), 0),
    ],
)
def test_the_user(found: Identity, uid: int) -> None:
    assert (found.uid, found.gid) == (uid, 0)


def test_groups() -> None:
    found = who({"runAsGroup": 7}, {"supplementalGroups": [9, 3], "fsGroup": 5})
    assert (found.gid, found.groups) == (7, (3, 5, 9))
    assert who(namespace=OPENSHIFT).groups == (RANDOM_UID,)


def test_the_group_of_volumes_is_the_namespaces_first_unless_told() -> None:
    plain, told = {"spec": {}}, {"spec": {"securityContext": {"fsGroup": 0}}}
    assert fs_group(plain, None) is None
    assert fs_group(plain, OPENSHIFT) == RANDOM_UID
    assert fs_group(told, OPENSHIFT) == 0
    dashed = {"metadata": {"annotations": {"openshift.io/sa.scc.uid-range": "100-200"}}}
    assert fs_group(plain, dashed) == 100


@pytest.mark.parametrize(
    ("own", "shared", "says"),
    [
        ({"runAsNonRoot": True}, {}, "container has runAsNonRoot and image will run as root"),
        ({}, {"runAsNonRoot": True}, "image will run as root"),
        ({"runAsUser": 0}, {"runAsNonRoot": True}, "runAsUser breaks non-root policy"),
    ],
)
def test_root_is_refused_where_it_must_not_be(own: Json, shared: Json, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        who(own, shared)
    assert str(caught.value).endswith('(pod: "p_team(u)", container: main)')


def test_a_container_can_take_back_what_its_pod_asks() -> None:
    assert who({"runAsNonRoot": False}, {"runAsNonRoot": True}).uid == 0
    assert who({"runAsNonRoot": True}, namespace=OPENSHIFT).uid == RANDOM_UID


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({}, set(DEFAULT_CAPABILITIES)),
        ({"capabilities": {"drop": ["ALL"]}}, set()),
        ({"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}}, {"NET_ADMIN"}),
        (
            {"capabilities": {"drop": ["cap_mknod"], "add": ["CAP_IPC_LOCK"]}},
            set(DEFAULT_CAPABILITIES) - {"MKNOD"} | {"IPC_LOCK"},
        ),
        ({"capabilities": {"add": ["ALL"]}}, set(CAPABILITIES)),
        ({"privileged": True}, set(CAPABILITIES)),
    ],
)
def test_capabilities(context: Json, expected: set[str]) -> None:
    assert names(who(context)) == expected


def test_numbers_of_capabilities() -> None:
    """linux/capability.h; the defaults together are what /proc shows in a container."""
    assert (CAPABILITIES["NET_ADMIN"], CAPABILITIES["IPC_LOCK"]) == (12, 14)
    assert (CAPABILITIES["SYS_ADMIN"], CAPABILITIES["CHECKPOINT_RESTORE"]) == (21, 40)
    assert sum(1 << CAPABILITIES[name] for name in DEFAULT_CAPABILITIES) == 0xA80425FB


def test_an_unknown_capability_is_refused() -> None:
    with pytest.raises(ConfigError, match='unknown capability: "CAP_FLY"'):
        who({"capabilities": {"add": ["FLY"]}})


def test_flags() -> None:
    plain = who()
    assert (plain.no_new_privileges, plain.read_only_root) == (False, False)
    strict = who({"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True})
    assert (strict.no_new_privileges, strict.read_only_root) == (True, True)
