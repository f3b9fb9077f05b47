"""What is an agent told of a storage that it is to make, and where will ranks find it?

The place follows from the names alone, so that a task can name it before any node is built.
"""

from dataclasses import dataclass
from typing import Literal

EmulatedKindWord = Literal["disk", "memory", "s3", "s3-mount", "s3-cached", "shared"]
OBJECT_KINDS: tuple[EmulatedKindWord, ...] = ("s3", "s3-mount", "s3-cached")
"""Each reads and writes a bucket of an S3 server."""
MOUNTED_KINDS: tuple[EmulatedKindWord, ...] = ("s3-mount", "s3-cached", "shared")

STORAGE_FOLDER = "/dev/shm/broadgauge-storage"
"""In each node, whose /dev/shm is its own: an ordinary user can make a folder to mount on there,
and nothing of the machine is hidden by it."""
BUCKET = "broadgauge"
"""Of each store's own server."""
STORE_PORT = 9000
"""Of the S3 server, or of what waits in front of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePlan:
    """One storage to make. What it means stands in specs/storage.py, `EmulatedStorage`."""

    name: str
    kind: EmulatedKindWord
    store: str
    """Storages of one store share its server, its bucket and its link."""
    read_gbyte_per_s: float | None = None
    write_gbyte_per_s: float | None = None
    rate_gbps: float | None = None
    request_latency_s: float = 0.0
    cache_bytes: int | None = None


def storage_folder(name: str) -> str:
    """Where do ranks find it?"""
    return f"{STORAGE_FOLDER}/{name}"


def store_host(store: str) -> str:
    """What is the node called on which the store's server is?"""
    return f"store-{store}"


def store_endpoint(store: str) -> str:
    """Under which URL is its bucket asked for?"""
    return f"http://{store_host(store)}:{STORE_PORT}"
