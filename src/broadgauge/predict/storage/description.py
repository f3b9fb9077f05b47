"""What is known of a storage, how sure is it, and who says so?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from broadgauge.predict.prediction import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownValue:
    """One property of a storage, from where to where it lies in eight cases of ten, and its source.

    The unit is in the name of what holds it.
    """

    value: float
    low: float
    high: float
    source: str

    @classmethod
    def around(cls, value: float, spread_ratio: float, source: str) -> Self:
        """As likely that much lower as that much higher."""
        return cls(value=value, low=value / spread_ratio, high=value * spread_ratio, source=source)

    def times(self, factor: float) -> "KnownValue":
        """So much of it."""
        return KnownValue(
            value=self.value * factor,
            low=self.low * factor,
            high=self.high * factor,
            source=self.source,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRates:
    """What streams in one direction carry, 10^9 byte/s."""

    stream_gbyte_per_s: KnownValue
    """Of one."""
    node_gbyte_per_s: KnownValue
    """Of all streams of a node together."""
    streams_at_once: int | None = None
    """So many are served at a time, the others after them; None: all."""

    def of_streams(self, streams: int) -> KnownValue:
        """b(n) = min(n × stream, node).

        Source: the shape of every rate over the number of streams that fio and IOR show; what is
        known of it here are its two ends.
        """
        together = streams if self.streams_at_once is None else min(streams, self.streams_at_once)
        many, node = self.stream_gbyte_per_s.times(together), self.node_gbyte_per_s
        least = many if many.value <= node.value else node
        return KnownValue(
            value=least.value,
            low=min(many.low, node.low),
            high=max(least.value, min(many.high, node.high)),
            source=least.source,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageModel:
    """A storage as a prediction sees it."""

    name: str
    read: StreamRates
    write: StreamRates
    """As the writer waits for them."""
    request_latency_s: KnownValue
    requests_at_once: int = 1
    """Of one stream."""
    request_bytes: int | None = None
    """None: a file is one request."""
    memory_gbyte_per_s: KnownValue
    """Of what a cache of the node keeps."""
    load_host_s: KnownValue | None = None
    """What a load takes beside its reading, of any size; None: as `load_host_gbyte_per_s`."""
    load_host_gbyte_per_s: KnownValue
    """Deserialising, sending on, onto the GPU: of one copy."""
    gather_gbyte_per_s: KnownValue
    """Gathering, copying from the device and serialising for a save: of a rank."""
    staging_gbyte_per_s: KnownValue
    """The copy that a save in the background waits for: of a rank."""
    is_durable: bool
    """It outlives the node."""
    is_write_back: bool = False
    """Writes end in a cache of the node first."""
    upload_gbyte_per_s: KnownValue | None = None
    """From that cache to the store, of a node; None: nobody says."""
    source: str = ""
    """Of the whole: an entry of the catalog, a file, a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One part of a phase's time."""

    name: str
    time_s: Interval
    source: str


def sum_of(terms: Sequence[Term]) -> Interval:
    """Terms are uncertain each by itself: their deviations add up as squares do."""
    value = sum(term.time_s.value for term in terms)
    below = sum((term.time_s.value - term.time_s.low) ** 2 for term in terms) ** 0.5
    above = sum((term.time_s.high - term.time_s.value) ** 2 for term in terms) ** 0.5
    return Interval(value=value, low=max(0.0, value - below), high=value + above)


def transfer(name: str, num_bytes: float, rate: KnownValue) -> Term:
    """Bytes over a rate in 10^9 byte/s."""
    gbytes = num_bytes / 1e9
    time_s = Interval(value=gbytes / rate.value, low=gbytes / rate.high, high=gbytes / rate.low)
    return Term(name=name, time_s=time_s, source=rate.source)


def lasting(name: str, seconds: KnownValue, times: float = 1.0) -> Term:
    """So many times a duration."""
    time_s = Interval(
        value=seconds.value * times, low=seconds.low * times, high=seconds.high * times
    )
    return Term(name=name, time_s=time_s, source=seconds.source)
