"""Did a read come from the page cache? Told only where it is proven.

Whoever asks for a cold read has asked for something, and nothing more: pages that another program
has mapped stay where they are, and a file system in memory has nowhere else to read from.
"""

from dataclasses import dataclass

from broadgauge.messages.storage import CacheState
from broadgauge.probes.storage.file_systems import FileSystem

NEARLY_ALL, NEARLY_NOTHING = 0.99, 0.01
"""Of the bytes that were read: readahead and metadata make the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRead:
    """What could be counted of one read of a file, or of what is needed of it."""

    size_bytes: int
    """Needed; the device may give more, by whole pages and ahead."""
    device_bytes: int | None
    """Read from block devices meanwhile, by this process; None: the kernel does not say."""
    cached_before_bytes: int | None
    """Pages of the whole file just before; None: the same."""
    whole_bytes: int | None = None
    """Of the file; None: all of it is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheProof:
    state: CacheState
    evidence: str


def proof_of(seen: SeenRead, file_system: FileSystem | None) -> CacheProof:
    """Cold: the device gave the bytes, and nobody has counted pages that were there before; or none
    was, and the file system is not memory. Warm: all pages of the whole file were there, or the
    device gave nothing where it would have been counted.
    """
    kind = "an unknown file system" if file_system is None else file_system.kind
    from_device = _share(seen.device_bytes, seen.size_bytes)
    cached = _share(seen.cached_before_bytes, seen.whole_bytes or seen.size_bytes)
    told = _told(from_device, cached, kind)
    if file_system is not None and file_system.is_memory:
        return CacheProof(state="warm", evidence=f"{kind} is memory")
    if from_device is not None and from_device >= NEARLY_ALL and (cached or 0) <= NEARLY_NOTHING:
        return CacheProof(state="cold", evidence=told)
    is_counted = file_system is not None and file_system.is_counted
    if is_counted and from_device is not None and from_device <= NEARLY_NOTHING:
        return CacheProof(state="warm", evidence=told)
    if cached is not None and cached >= NEARLY_ALL and not (from_device or 0) > NEARLY_NOTHING:
        return CacheProof(state="warm", evidence=told)
    if cached == 0 and file_system is not None and not is_counted:
        return CacheProof(state="cold", evidence=told)
    return CacheProof(state="unknown", evidence=told)


def _share(part: int | None, whole: int) -> float | None:
    return None if part is None or not whole else part / whole


def _told(from_device: float | None, cached: float | None, kind: str) -> str:
    device = "unknown" if from_device is None else f"{from_device:.2f} of the bytes"
    before = "unknown" if cached is None else f"{cached:.2f} of the file"
    return f"from the device: {device}; in memory before: {before}; {kind}"
