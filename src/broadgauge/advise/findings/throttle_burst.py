"""Was a throttled disk faster than its limit?"""

from collections.abc import Iterator

from broadgauge.advise.limits import THROTTLED_MOST, THROTTLED_S
from broadgauge.specs.case import Case
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.records.record import Finding, Record, Severity
from broadgauge.specs.storages.storage import EmulatedDisk
from broadgauge.specs.units import show_bandwidth, show_size


def faster_than_throttle(case: Case, record: Record) -> Iterator[Finding]:
    """What a slice of the block throttle lets through at once, or what the kernel wrote back by
    itself, says nothing of a disk of that rate."""
    if case.storage is None or not isinstance(case.storage.emulated, EmulatedDisk):
        return
    for access in ("write", "read"):
        limit = case.storage.emulated.byte_per_s(access) * case.nodes
        rows = [row for row in record.file_accesses if row.access == access and row.cache != "warm"]
        faster = [row for row in rows if _byte_per_s(row) > THROTTLED_MOST * limit]
        if faster:
            first = faster[0]
            yield Finding(
                rule="faster-than-throttle",
                severity=Severity.WARNING,
                symptom=f"{len(faster)} of {len(rows)} {access}s were faster than the "
                f"{show_bandwidth(limit / 1e9)} of {_disks(case.nodes)}",
                evidence=(
                    f"{show_size(first.size_bytes)} at {show_bandwidth(_byte_per_s(first) / 1e9)}",
                ),
                cause="the kernel lets about a tenth of a second's bytes through at once, and does "
                "not limit what it writes back by itself",
                fix=f"more bytes a repetition: {show_size(round(THROTTLED_S * limit))} or more; of "
                "raw files `direct: true`",
            )


def _disks(nodes: int) -> str:
    return "the throttled disk" if nodes == 1 else f"{nodes} throttled disks, one a node"


def _byte_per_s(row: FileAccessRow) -> float:
    """Of bytes that came from the device, where they are counted."""
    moved_bytes = row.size_bytes if row.device_bytes is None else row.device_bytes
    return moved_bytes / row.time_s if row.time_s else 0.0
