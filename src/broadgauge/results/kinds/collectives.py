"""Which figures speak for collectives?"""

from broadgauge.results.kinds.kind import KindInResults


class CollectivesInResults(KindInResults):
    """Collectives as their figures are compared."""

    @property
    def headline_metrics(self) -> tuple[str, ...]:
        return ("busbw_gbyte_per_s", "latency_s")
