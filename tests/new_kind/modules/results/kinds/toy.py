"""Which figure speaks for naps?"""

from broadgauge.results.kinds.kind import KindInResults


class ToyInResults(KindInResults):
    @property
    def headline_metrics(self) -> tuple[str, ...]:
        return ("nap_time_s",)
