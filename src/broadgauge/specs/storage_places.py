"""Where do ranks find a storage, and what is an agent told that has to make it?"""

import re

from broadgauge.messages.emulated_storage import (
    BUCKET,
    OBJECT_KINDS,
    StoragePlan,
    storage_folder,
    store_endpoint,
)
from broadgauge.messages.storage import ObjectPlace, StoragePlace
from broadgauge.specs.storage import ObjectUrl, Storage

_URL = re.compile(r"^s3://(?P<bucket>[^/]+)/?(?P<prefix>.*)$")


def place_of(storage: Storage) -> StoragePlace:
    """As a rank is told it. Credentials stand in its environment, never here."""
    if storage.emulated is not None:
        return _emulated_place(storage)
    behind, objects = storage.object_url, storage.url
    return StoragePlace(
        name=storage.name,
        folder=storage.path,
        objects=None if objects is None else _object_place(objects, storage.endpoint),
        behind=None if behind is None else _object_place(behind, storage.endpoint),
        is_shared=storage.is_seen_by_all,
    )


def emulated_plan(storage: Storage) -> StoragePlan | None:
    """As the agent is told it; None: it is none of ours to make."""
    emulated = storage.emulated
    if emulated is None:
        return None
    return StoragePlan(
        name=storage.name,
        kind=emulated.kind,
        store=store_of(storage),
        read_gbyte_per_s=emulated.read_gbyte_per_s,
        write_gbyte_per_s=emulated.write_gbyte_per_s,
        rate_gbps=emulated.rate_gbps,
        request_latency_s=emulated.request_latency_s,
        cache_bytes=emulated.cache_bytes,
    )


def store_of(storage: Storage) -> str:
    """Where do its bytes rest? One that names no store has one of its own name."""
    return storage.store or storage.name


def _emulated_place(storage: Storage) -> StoragePlace:
    assert storage.emulated is not None
    kind = storage.emulated.kind
    bucket = ObjectPlace(bucket=BUCKET, endpoint=store_endpoint(store_of(storage)))
    if kind == "s3":
        return StoragePlace(name=storage.name, objects=bucket, is_shared=True)
    return StoragePlace(
        name=storage.name,
        folder=storage_folder(storage.name),
        behind=bucket if kind in OBJECT_KINDS else None,
        is_shared=storage.is_seen_by_all,
    )


def _object_place(url: ObjectUrl, endpoint: str | None) -> ObjectPlace:
    found = _URL.match(url)
    assert found is not None, "specs/storage.py holds the form of a URL"
    return ObjectPlace(bucket=found["bucket"], prefix=found["prefix"].strip("/"), endpoint=endpoint)
