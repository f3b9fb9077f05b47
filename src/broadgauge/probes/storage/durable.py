"""When is what was written durable, and who says so?

An object store is asked itself, also behind a mount: the mount's fsync returned 3.4 s before the
whole object was in the bucket, and its listing was stale (measured here with rclone over 400
Mbit/s). A block or network file system's fsync of file and folder counts. Of another mount nobody
can be asked.
"""

import base64
import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broadgauge.messages.storage import ObjectPlace
from broadgauge.probes.storage.cache import (
    BLOCK_TYPES,
    MEMORY_TYPES,
    NETWORK_TYPES,
    filesystem_type,
)
from broadgauge.probes.storage.objects import key_of, open_store
from broadgauge.probes.storage.place import OwnPlace

POLL_S = 0.02
"""Between two questions; a time to durable is that much too long at most, and a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableSince:
    """`at_s`: on the monotonic clock, when it was seen to be durable; None: not known."""

    at_s: float | None
    evidence: str


def fsync_folder(folder: Path) -> None:
    """So that the file's name is durable, too. Source: fsync(2)."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def wait_until_durable(
    own: OwnPlace, sizes: Mapping[str, int | None], written_s: float, limit_s: float
) -> DurableSince:
    """`sizes`: bytes by name, all written and fsynced at `written_s`."""
    asked = own.objects if own.folder is None else own.behind
    if asked is not None:
        return _ask_store(asked, own, sizes, limit_s)
    return _by_filesystem(filesystem_type(Path(own.folder or "")), written_s)


def _by_filesystem(kind: str, written_s: float) -> DurableSince:
    if kind in MEMORY_TYPES:
        return DurableSince(
            at_s=None, evidence=f"{kind} is memory: nothing in it outlives the machine"
        )
    if kind in BLOCK_TYPES or kind in NETWORK_TYPES:
        return DurableSince(at_s=written_s, evidence=f"file and folder fsynced on {kind}")
    why = f"{kind} may answer fsync before the store has the file, and no bucket behind it is named"
    return DurableSince(at_s=None, evidence=why)


def _ask_store(
    asked: ObjectPlace, own: OwnPlace, sizes: Mapping[str, int | None], limit_s: float
) -> DurableSince:
    store = open_store(asked)
    end_s = time.monotonic() + limit_s
    missing = dict(sizes)
    checksums: dict[str, str] = {}
    at_s = time.monotonic()
    while missing:
        for name, size in list(missing.items()):
            info = _head(store, key_of(asked, name))
            if info is not None and size in (None, info.get("size")):
                del missing[name]
                checksums[name] = _checksum(info)
                at_s = time.monotonic()
        if missing and time.monotonic() > end_s:
            name, size = next(iter(missing.items()))
            why = f"{name} ({size} bytes) is not in s3://{asked.bucket} after {limit_s:.3g} s"
            return DurableSince(at_s=None, evidence=why)
        if missing:
            time.sleep(POLL_S)
    agrees = _compare(own, checksums)
    count = f"{len(sizes)} objects" if len(sizes) > 1 else "object"
    total = sum(size or 0 for size in sizes.values())
    return DurableSince(at_s=at_s, evidence=f"{count} there, {total} bytes, {agrees}")


def _head(store: Any, key: str) -> Mapping[str, Any] | None:
    try:
        info: Mapping[str, Any] = store.info(key, refresh=True)
    except FileNotFoundError:
        return None
    return info if info.get("type") == "file" else None


def _checksum(info: Mapping[str, Any]) -> str:
    """The MD5 of the content as hexadecimal digits; empty: the store has none of the whole.

    Source: Amazon S3 API, Object: a single upload's ETag is its MD5, a multipart one's has a dash;
    rclone keeps it as the metadata `md5chksum`.
    """
    if told := (info.get("metadata") or info.get("Metadata") or {}).get("md5chksum"):
        return base64.b64decode(told).hex()
    etag = str(info.get("ETag", "")).strip('"')
    return etag if len(etag) == 32 and "-" not in etag else ""


MOST_CHECKED_BYTES = 256 * 1024**2
"""Of a file that is read again for its checksum."""


def _compare(own: OwnPlace, checksums: Mapping[str, str]) -> str:
    """After the time was taken: reading the file back is our own cost, not the save's."""
    if own.folder is None or not all(checksums.values()):
        return "the size agrees"
    paths = {name: own.path(name) for name in checksums}
    if sum(path.stat().st_size for path in paths.values()) > MOST_CHECKED_BYTES:
        return "the size agrees"
    for name, path in paths.items():
        digest = hashlib.md5(usedforsecurity=False)
        with path.open("rb") as content:
            while piece := content.read(1 << 20):
                digest.update(piece)
        if digest.hexdigest() != checksums[name]:
            raise OSError(f"{name}: the object in the store has another checksum than the file")
    return "checksum agrees"
