"""What do the messages between all pairs of nodes say of a trial as a whole?

The headline figures are those of the median pair, so that one bad link does not pass for the
network, and `slowest_pair_ratio` says how bad the worst one is against it. Where most pairs are
slow alike, as across a slow uplink, the median is one of them: advise/pairs/ names those.
"""

import statistics

from broadgauge.merging.metrics import MeasurementBuilder, put_link, why_no_traffic
from broadgauge.specs.case import Case
from broadgauge.specs.records.op_rows import AnyOpRow, MessageRow
from broadgauge.specs.records.pair_rates import largest_of_pairs, pair_rate_gbyte_per_s

TWO_ENDS = "two ends only: no other pairs to compare with"


def put_pairs(found: MeasurementBuilder, case: Case) -> None:
    """busbw and algbw are the same: a message crosses one link once."""
    rows = largest_of_pairs(found.collectives)
    median = _median_pair(list(rows.values()))
    found.put("busbw_gbyte_per_s", median.busbw_gbyte_per_s)
    found.put("algbw_gbyte_per_s", median.algbw_gbyte_per_s)
    found.put("latency_s", _median_latency_s(found.collectives, median.dtype))
    put_link(found, case, median.wire_bytes, median.time_s)
    found.put("amplification_ratio", median.amplification_ratio, why_no_traffic(case))
    rates = [pair_rate_gbyte_per_s(row) for row in rows.values()]
    ratio = min(rates) / statistics.median(rates) if len(rates) > 2 else None
    found.put("slowest_pair_ratio", ratio, TWO_ENDS)


def _median_pair(rows: list[MessageRow]) -> MessageRow:
    """Of an even number the slower of the two in the middle: a pair that there is."""
    ordered = sorted(rows, key=pair_rate_gbyte_per_s)
    return ordered[(len(ordered) - 1) // 2]


def _median_latency_s(rows: tuple[AnyOpRow, ...], dtype: str) -> float:
    """Of the smallest message, its acknowledgement with it, over the pairs."""
    same = [row for row in rows if row.dtype == dtype]
    smallest_bytes = min(row.size_bytes for row in same)
    return statistics.median(row.typical_s for row in same if row.size_bytes == smallest_bytes)
