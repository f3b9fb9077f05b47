"""What does the loading of a model wait for most, and how much of what the storage can do does it
reach?"""

from broadgauge.advise.verdicts.raw_rates import raw_gbyte_per_s
from broadgauge.advise.verdicts.storage_verdict import states_of
from broadgauge.advise.verdicts.time_shares import file_systems, largest_share, times_not_kept
from broadgauge.advise.verdicts.verdict import Verdict, verdict_that
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.units import show_bandwidth, show_size, show_time


def verdict_of_model_load(summary: CaseSummary, run: RunSummary) -> Verdict:
    """At least one trial succeeded. Its time is the closing table's."""
    time_s = summary.value("model_load_s")
    if time_s is None:
        return times_not_kept(summary)
    rows = [row for record in summary.good for row in record.file_accesses]
    states = states_of(rows)
    share = largest_share(rows, summary.case.world_size, is_in_memory=states == "warm")
    words = [
        f"a training waits {show_time(time_s)} for its model, whose files were {states}",
        share.in_words,
    ]
    evidence = [
        f"{len(rows)} loads of {show_size(rows[0].size_bytes)} by all nodes, parts of the rank "
        "that works longest",
        file_systems(rows),
        f"a load: {rows[0].evidence}",
    ]
    rate, raw = summary.value("read_gbyte_per_s"), raw_gbyte_per_s(summary, run, "read", "cold")
    if states == "cold" and rate is not None and raw is not None:
        words.append(f"it reaches {rate / raw * 100:.0f} % of what raw files do there")
        evidence.append(
            f"{show_bandwidth(rate)} until loaded; raw files of as many ranks {show_bandwidth(raw)}"
        )
    return verdict_that(share.bound(summary.case.nodes), "; ".join(words), tuple(evidence))
