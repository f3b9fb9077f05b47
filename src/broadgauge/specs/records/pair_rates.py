"""How fast was each pair of a pairwise trial?"""

from collections.abc import Sequence

from broadgauge.messages.pair_order import RankPair
from broadgauge.specs.records.op_rows import AnyOpRow, MessageRow, OpRow


def largest_of_pairs(rows: Sequence[OpRow]) -> dict[RankPair, MessageRow]:
    """The largest message of each pair, in the first data type; empty: no pairwise trial."""
    pairs = [row for row in rows if isinstance(row, MessageRow)]
    if not pairs:
        return {}
    first = [row for row in pairs if row.dtype == pairs[0].dtype]
    largest_bytes = max(row.size_bytes for row in first)
    return {(row.from_rank, row.to_rank): row for row in first if row.size_bytes == largest_bytes}


def pair_rate_gbyte_per_s(row: AnyOpRow) -> float:
    """How fast was this pair? The message over its median time: one hiccup is not a slow cable."""
    return row.size_bytes / row.typical_s / 1e9
