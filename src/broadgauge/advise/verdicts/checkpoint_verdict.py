"""What does a checkpoint wait for most, and how much of what the storage can do does it reach?"""

from broadgauge.advise.verdicts.raw_rates import raw_gbyte_per_s
from broadgauge.advise.verdicts.time_shares import file_systems, largest_share, times_not_kept
from broadgauge.advise.verdicts.verdict import Verdict, verdict_that
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.units import show_bandwidth, show_size, show_time


def verdict_of_checkpoint(summary: CaseSummary, run: RunSummary) -> Verdict:
    """At least one trial succeeded. Its times are the closing table's."""
    stall_s, durable_s = summary.value("save_stall_s"), summary.value("save_durable_s")
    if stall_s is None or durable_s is None:
        return times_not_kept(summary)
    rows = [row for record in summary.good for row in record.file_accesses]
    share = largest_share(rows, summary.case.world_size)
    words = [
        f"training waits {show_time(stall_s)} of the {show_time(durable_s)} until a checkpoint is "
        "durable",
        share.in_words,
    ]
    evidence = [
        f"{len(rows)} saves of {show_size(rows[0].size_bytes)}, parts of the rank that works "
        "longest",
        file_systems(rows),
    ]
    rate, raw = summary.value("write_gbyte_per_s"), raw_gbyte_per_s(summary, run, "write")
    if rate is not None and raw is not None:
        words.append(f"it reaches {rate / raw * 100:.0f} % of what raw files do there")
        evidence.append(
            f"{show_bandwidth(rate)} until durable; raw files of as many ranks "
            f"{show_bandwidth(raw)}"
        )
    return verdict_that(share.bound(summary.case.nodes), "; ".join(words), tuple(evidence))
