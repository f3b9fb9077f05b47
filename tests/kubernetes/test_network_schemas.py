"""Proves that the tests' API server judges attached networks by the schemas of their releases."""

from collections.abc import Callable

import pytest
from tests.kubernetes import samples
from tests.kubernetes.cluster.api import Api, Manifest, RefusedError
from tests.kubernetes.cluster.control_plane import ControlPlane

pytestmark = [pytest.mark.kubernetes, pytest.mark.usefixtures("network_kinds")]


@pytest.fixture
def api(control_plane: ControlPlane) -> Api:
    """Nothing is stored, so no test needs a namespace of its own: each costs 0.3 s of core time."""
    return control_plane.api()


@pytest.mark.parametrize(
    ("sample", "right", "misspelt"),
    [
        (samples.network_attachment, "config", "confg"),
        (samples.ip_pool, "range", "ranges"),
        (samples.sriov_network, "spoofChk", "spoofCheck"),
        (samples.sriov_policy, "isRdma", "isRDMA"),
    ],
)
def test_a_right_one_passes_and_a_misspelt_field_is_refused_by_its_path(
    api: Api, sample: Callable[[], Manifest], right: str, misspelt: str
) -> None:
    manifest = sample()
    assert api.create(manifest, dry_run=True)["spec"][right] == manifest["spec"][right]
    manifest["spec"][misspelt] = manifest["spec"].pop(right)
    with pytest.raises(RefusedError) as refused:
        api.create(manifest, dry_run=True)
    assert (refused.value.status, refused.value.reason) == (400, "BadRequest")
    assert f'unknown field "spec.{misspelt}"' in refused.value.message
    assert api.read(manifest) is None


def test_a_field_within_an_allocation_is_refused_by_its_path(api: Api) -> None:
    manifest = samples.ip_pool()
    manifest["spec"]["allocations"]["1"]["podRef"] = "default/worker-0"
    with pytest.raises(RefusedError, match=r'unknown field "spec\.allocations\.1\.podRef"'):
        api.create(manifest, dry_run=True)


def test_what_a_kind_requires_is_missed(api: Api) -> None:
    manifest = samples.sriov_network()
    del manifest["spec"]["resourceName"]
    with pytest.raises(RefusedError, match=r"spec\.resourceName: Required value") as refused:
        api.create(manifest, dry_run=True)
    assert (refused.value.status, refused.value.reason) == (422, "Invalid")


def test_what_stands_in_the_text_of_an_attachment_is_nobodys_to_judge(api: Api) -> None:
    """So that whoever writes one has to hold it against CNI's specification."""
    manifest = samples.network_attachment()
    manifest["spec"]["config"] = '{"type": "host-device" "isRdma": true}'
    api.create(manifest, dry_run=True)
