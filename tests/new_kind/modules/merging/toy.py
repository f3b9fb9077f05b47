"""What do the ranks' naps add up to?"""

from collections.abc import Sequence

from broadgauge.messages.toy import NapBlock

from broadgauge.merging.counters import intervals_by_label
from broadgauge.merging.metrics import MeasurementBuilder, put_nodes
from broadgauge.merging.rank_blocks import RankBlocks
from broadgauge.specs.case import Case
from broadgauge.specs.launching import Mark


def merge_toy(case: Case, ranks: Sequence[RankBlocks], marks: Sequence[Mark]) -> MeasurementBuilder:
    """The longest of all ranks' naps, and each as a series."""
    found = MeasurementBuilder()
    naps = [nap for rank in ranks for block in rank.of(NapBlock) for nap in block.seconds]
    found.put("nap_time_s", max(naps, default=None), "nobody napped")
    found.series["nap_time_s"] = tuple(naps)
    put_nodes(found, case, list(intervals_by_label(marks).values()))
    return found
