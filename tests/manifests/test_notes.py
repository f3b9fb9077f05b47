"""Proves manifests/notes.py: what would go wrong in pods is said as their files are written."""

import pytest
from tests.manifests.requests import VNIC, experiment_of, request_of

from broadgauge.manifests.notes import notes_on

ROCE = {**VNIC, "transport": "roce"}
ADDRESSES = {"kind": "whereabouts", "ranges": "10.20.0.0/24"}


def notes_of(face: dict[str, object], **settings: object) -> str:
    networks = [{"name": "fast", "kubernetes": face}]
    return "\n".join(notes_on(request_of(experiment_of(networks=networks, **settings))))


def test_nics_without_addresses_are_said() -> None:
    bare = {key: value for key, value in VNIC.items() if key != "ipam"}
    assert "network fast: no `ipam` is named" in notes_of(bare)
    assert "no `ipam`" not in notes_of({**bare, "ipam": ADDRESSES})


def test_rdma_without_a_device_plugin_is_said() -> None:
    assert "give a pod /dev/infiniband" in notes_of(ROCE)
    assert "/dev/infiniband" not in notes_of({**ROCE, "resources": "rdma/shared"})
    assert "/dev/infiniband" not in notes_of(VNIC)


def test_what_several_networks_share_is_said_once() -> None:
    networks = [{"name": name, "kubernetes": ROCE} for name in ("first", "second")]
    notes = notes_on(request_of(experiment_of(networks=networks)))
    [note] = [note for note in notes if "/dev/infiniband" in note]
    assert note.startswith("networks first, ")
    assert "second" in note.split(":")[0]


@pytest.mark.parametrize("image", [None, "registry.example/team/training:1"])
def test_an_image_that_nobody_named_is_said(image: str | None) -> None:
    settings = {} if image is None else {"image": image}
    assert ("no `kubernetes.image` is named" in notes_of(VNIC, **settings)) == (image is None)


def test_a_claim_of_one_node_for_several_pods_is_said() -> None:
    once = {"name": "d", "mount": "/d", "size_bytes": "1 GiB", "access": "ReadWriteOnce"}
    assert "volume d: a ReadWriteOnce claim" in notes_of(VNIC, volumes=[once])
    many = once | {"access": "ReadWriteMany"}
    assert "ReadWriteOnce" not in notes_of(VNIC, volumes=[many])
    network = [{"name": "fast", "kubernetes": VNIC}]
    alone = request_of(experiment_of(networks=network, volumes=[once], shape="1x2"))
    assert "ReadWriteOnce" not in "".join(notes_on(alone))


def test_an_rdma_namespace_that_nobody_names_is_said() -> None:
    face = {"attachment": "sriov", "resources": "a.io/vf", "transport": "roce", "ipam": ADDRESSES}
    assert "RDMA namespace mode is `exclusive`" in notes_of(face)
    assert "RDMA namespace mode" not in notes_of({**face, "rdma_namespace": "exclusive"})


def test_an_address_map_without_a_user_is_said_for_openshift() -> None:
    networks = [
        {"name": "fast", "kubernetes": VNIC | {"ipam": {"kind": "address-map", "map": "m"}}}
    ]
    for settings, is_said in (({}, True), ({"run_as_user": 1001}, False)):
        asked = request_of(
            experiment_of(networks=networks, **settings), address_map="a:b:c:1.1.1.1"
        )
        said = "\n".join(notes_on(asked))
        assert "NET_ADMIN" in said
        assert ("name `kubernetes.run_as_user`" in said) == is_said
