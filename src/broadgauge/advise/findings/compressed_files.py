"""Did the file system compress what was written, so that rates are not those of its device?"""

from collections.abc import Iterator

from broadgauge.advise.limits import HELD_LEAST
from broadgauge.specs.case import Case
from broadgauge.specs.records.record import Finding, Record, Severity


def compressed_files(case: Case, record: Record) -> Iterator[Finding]:
    """Rates are of files' bytes, of which the device moves what the file system holds."""
    rows = [row for row in record.file_accesses if row.held_ratio is not None]
    held = min(rows, key=lambda row: row.held_ratio or 0.0, default=None)
    if held is None or held.held_ratio is None or held.held_ratio >= HELD_LEAST:
        return
    is_text = case.workload.writes_text
    yield Finding(
        rule="compressing-file-system",
        severity=Severity.WARNING,
        symptom="the file system compresses these files: rates are of their bytes, of which the "
        f"device moves {held.held_ratio:.2f} at most",
        evidence=(
            f"{held.file_system or 'the file system'} holds {held.held_ratio:.2f} of the files' "
            "bytes, by the places of their extents",
        ),
        cause="JSON lines hold their random bytes as base64, which is text" if is_text else None,
        fix="to measure the device, "
        + ("`source: files`, or " if is_text else "")
        + "another `path`, of which the file system compresses nothing",
    )
