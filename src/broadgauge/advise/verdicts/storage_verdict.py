"""What does a phase on a storage wait for most? Of raw files: which part of the write, and whether
the reads came from the storage at all."""

from broadgauge.advise.verdicts.time_shares import file_systems, largest_share
from broadgauge.advise.verdicts.verdict import Bound, Verdict, verdict_that
from broadgauge.results.model import CaseSummary
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.units import show_size


def verdict_of_storage(summary: CaseSummary) -> Verdict:
    """At least one trial succeeded."""
    rows = [row for record in summary.good for row in record.file_accesses]
    writes = [row for row in rows if row.access == "write"]
    reads = [row for row in rows if row.access == "read"]
    words = [f"reads were {states_of(reads)}"]
    share = largest_share(writes, summary.case.world_size)
    words.append(f"{share.longest_part} is {share.longest_ratio * 100:.0f} % of a write")
    evidence = (
        f"{len(writes)} writes and {len(reads)} reads of {show_size(reads[0].size_bytes)}",
        file_systems(rows),
        f"a read: {reads[0].evidence}",
    )
    return verdict_that(Bound.STORAGE, "; ".join(words), evidence)


def states_of(reads: list[FileAccessRow]) -> str:
    """`cold`, or `cold or unknown` where they differ."""
    return " or ".join(sorted({row.cache or "unknown" for row in reads}))
