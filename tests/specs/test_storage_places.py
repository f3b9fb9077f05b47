"""Do ranks and agents agree about where an emulated storage is?"""

from typing import get_args

import pytest

from broadgauge.messages.emulated_storage import EmulatedKindWord
from broadgauge.messages.storage import ObjectPlace
from broadgauge.specs.storage import EmulatedKind, EmulatedStorage, Storage
from broadgauge.specs.storage_places import emulated_plan, place_of


def emulated(kind: EmulatedKind, **keys: object) -> Storage:
    return Storage(name="one", emulated=EmulatedStorage(kind=kind), **keys)


def test_agents_know_every_kind_of_an_experiment() -> None:
    assert get_args(EmulatedKindWord) == get_args(EmulatedKind)


@pytest.mark.parametrize("kind", get_args(EmulatedKind))
def test_a_place_has_one_way_in(kind: EmulatedKind) -> None:
    place = place_of(emulated(kind))
    assert (place.folder is None) == (place.objects is not None) == (kind == "s3")
    assert (place.behind is not None) == (kind in ("s3-mount", "s3-cached"))
    assert place.is_shared == (kind not in ("disk", "memory"))


def test_mounts_of_one_store_show_one_bucket() -> None:
    mounted = place_of(emulated("s3-mount", store="bucket"))
    direct = place_of(emulated("s3", store="bucket"))
    assert mounted.behind == direct.objects
    assert mounted.behind is not None
    assert mounted.behind.endpoint == "http://store-bucket:9000"
    assert place_of(emulated("s3")).objects != direct.objects


def test_a_folder_and_a_url_stay_what_they_are() -> None:
    folder = Storage(name="nfs", path="/mnt/nfs", object_url="s3://data/some/", endpoint="http://x")
    place = place_of(folder)
    assert (place.folder, place.objects) == ("/mnt/nfs", None)
    assert place.behind == ObjectPlace(bucket="data", prefix="some", endpoint="http://x")
    assert emulated_plan(folder) is None
    url = place_of(Storage(name="s3", url="s3://data"))
    assert (url.folder, url.objects) == (None, ObjectPlace(bucket="data"))


def test_a_plan_names_its_store() -> None:
    plan = emulated_plan(
        Storage(name="slow", emulated=EmulatedStorage(kind="s3-mount", rate_gbps=1.0))
    )
    assert plan is not None
    assert (plan.store, plan.rate_gbps, plan.kind) == ("slow", 1.0, "s3-mount")
