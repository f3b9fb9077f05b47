"""At which sizes of message do two cases differ? Their headline figure is the largest size's."""

from broadgauge.results.model import CaseSummary, CollectiveSummary, SizeRatio

_OF_SIZES = "busbw_gbyte_per_s"
"""The metric whose comparison says what other sizes did."""


def size_ratios(a: CaseSummary, b: CaseSummary, metric: str) -> tuple[SizeRatio, ...]:
    """B over A at every size that both have, by collective, in A's order.

    Empty for other metrics, and where there is one size alone.
    """
    if metric != _OF_SIZES:
        return ()
    of_b = {_point(row): row for row in b.collectives}
    pairs = [(row, of_b[_point(row)]) for row in a.collectives if _point(row) in of_b]
    found = tuple(
        SizeRatio(
            engine=row.engine,
            op=row.op,
            dtype=row.dtype,
            size_bytes=row.size_bytes,
            busbw_ratio=other.busbw_gbyte_per_s.value / row.busbw_gbyte_per_s.value,
        )
        for row, other in pairs
        if row.busbw_gbyte_per_s.value > 0 and other.busbw_gbyte_per_s.value > 0
    )
    return found if len(found) > 1 else ()


def _point(row: CollectiveSummary) -> tuple[str, str, str, int]:
    return row.op, row.dtype, row.engine, row.size_bytes
