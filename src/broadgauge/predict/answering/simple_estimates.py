"""What would one work out by hand, what does the model answer instead, and why do they differ?

The hand's estimate is compute time + bytes over a rate, one after the other. Article net1-2025 does
it twice, with the nominal rate and with a measured all-reduce; a test reproduces its digits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from broadgauge.predict.answering.carried_rate import carried_gbyte_per_s
from broadgauge.predict.prediction import Prediction
from broadgauge.specs.units import show_bandwidth, show_time

NEGLIGIBLE_RATIO = 0.005
"""Of a step: differences below it aren't worth a sentence."""
BESIDE = "communication between nodes runs beside compute and costs nothing"
OF_STAGES = (
    "by hand one node's bytes take their time once; here the transfers of several nodes, one after "
    "another, are waited for or run beside compute"
)
INSIDE = "the step waits for links inside the node; by hand only bytes between nodes count"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleEstimate:
    """One estimate by hand: its parts add up to `total_s`."""

    method: str
    """In words: which bytes over which rate."""
    compute_s: float
    communication_s: float
    total_s: float
    arithmetic: str
    """With the figures in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateDifference:
    """One reason why the model's answer is another than an estimate by hand."""

    signed_s: float
    """Below 0: the model's answer is shorter by so much."""
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The estimates by hand beside the model's answer."""

    estimates: tuple[SimpleEstimate, ...]
    model_s: float
    reasons: tuple[str, ...]
    """Why the model's answer is another than the last estimate: each with its seconds, signed."""


def rounded(value: float, places: int) -> float:
    """As one writes it down: half goes up, also where binary fractions fall just short."""
    step = Decimal(1).scaleb(-places)
    return float(Decimal(repr(value)).quantize(step, rounding=ROUND_HALF_UP))


def bytes_over_rate(
    *,
    compute_s: float,
    num_steps: int,
    message_bytes: float,
    rate_gbyte_per_s: float,
    transfers: float = 2.0,
    total_places: int | None = None,
    method: str = "bytes over the nominal rate",
) -> SimpleEstimate:
    """Steps × transfers × message / rate, after the compute. `transfers` is 2 for an all-reduce.

    `total_places` rounds the bytes to so many places of 10^12 first, as who writes down "3.14 TB"
    and goes on from there. Source: net1-2025, "Communication Time Estimates".
    """
    total_bytes = num_steps * transfers * message_bytes
    if total_places is not None:
        total_bytes = rounded(total_bytes / 1e12, total_places) * 1e12
    communication_s = total_bytes / (rate_gbyte_per_s * 1e9)
    steps = "" if num_steps == 1 else f"{num_steps:,} steps × "
    times = "" if transfers == 1 else f"{transfers:g} × "
    return SimpleEstimate(
        method=method,
        compute_s=compute_s,
        communication_s=communication_s,
        total_s=compute_s + communication_s,
        arithmetic=(
            f"{steps}{times}{_show_bytes(message_bytes)} / {rate_gbyte_per_s:g} GB/s "
            f"= {_show_s(communication_s)}, after {_show_s(compute_s)} of compute"
        ),
    )


def explain(prediction: Prediction) -> Explanation:
    """One step by hand with each rate that is known, beside the model's answer.

    By hand, compute is what the model has for it without any communication, so that the two differ
    by what the network does and nothing else.
    """
    parts = prediction.parts
    compute_s = (
        parts.compute_s + parts.launch_s + parts.bubble_s + parts.optimizer_s + parts.storage_s
    )
    estimates = tuple(_by_hand(prediction, compute_s))
    return Explanation(
        estimates=estimates,
        model_s=prediction.step_time_s.value,
        reasons=tuple(_reasons(prediction, estimates[-1])) if estimates else (),
    )


def _by_hand(prediction: Prediction, compute_s: float) -> Iterator[SimpleEstimate]:
    fabric = prediction.case.fabric
    sent_bytes = prediction.network_bytes
    if sent_bytes <= 0:
        return
    if fabric.node_gbps is not None:
        yield bytes_over_rate(
            compute_s=compute_s,
            num_steps=1,
            message_bytes=sent_bytes,
            transfers=1.0,
            rate_gbyte_per_s=fabric.node_gbps / 8,
        )
    if fabric.measured_node_gbyte_per_s is not None:
        yield bytes_over_rate(
            compute_s=compute_s,
            num_steps=1,
            message_bytes=sent_bytes,
            transfers=1.0,
            rate_gbyte_per_s=fabric.measured_node_gbyte_per_s,
            method="bytes over the measured rate",
        )


def differences(prediction: Prediction, by_hand: SimpleEstimate) -> tuple[EstimateDifference, ...]:
    """All that lies between this estimate and the model's answer: they add up to it."""
    busy_s, parts = prediction.network_busy_s, prediction.parts
    inside = EstimateDifference(signed_s=parts.exposed_intra_node_s, words=INSIDE)
    carried = carried_gbyte_per_s(prediction)
    if carried is None:
        waited_s = parts.exposed_network_s - by_hand.communication_s
        return EstimateDifference(signed_s=waited_s, words=OF_STAGES), inside
    rate_words = _rate_words(prediction, by_hand, carried)
    return (
        EstimateDifference(signed_s=busy_s - by_hand.communication_s, words=rate_words),
        EstimateDifference(signed_s=parts.exposed_network_s - busy_s, words=BESIDE),
        inside,
    )


def _reasons(prediction: Prediction, by_hand: SimpleEstimate) -> Iterator[str]:
    """The differences that are worth a sentence, the largest first."""
    least_s = NEGLIGIBLE_RATIO * prediction.step_time_s.value
    found = differences(prediction, by_hand)
    for each in sorted(found, key=lambda each: -abs(each.signed_s)):
        if abs(each.signed_s) > least_s:
            sign = "+" if each.signed_s > 0 else "−"
            yield f"{sign}{show_time(abs(each.signed_s))}: {each.words}"


def _rate_words(prediction: Prediction, by_hand: SimpleEstimate, carried_gbyte_per_s: float) -> str:
    """`the model lets the network carry 1.2 GB/s, not 25 GB/s: 28.44 GB take 23.7 s`."""
    sent_bytes, busy_s = prediction.network_bytes, prediction.network_busy_s
    carried = show_bandwidth(carried_gbyte_per_s)
    divided = show_bandwidth(sent_bytes / by_hand.communication_s / 1e9)
    return (
        f"the model lets the network carry {carried}, latency included, not {divided}: "
        f"{_show_bytes(sent_bytes)} take {show_time(busy_s)}"
    )


def _show_s(seconds: float) -> str:
    if seconds >= 100:
        return f"{seconds:.2f} s"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _show_bytes(number: float) -> str:
    return f"{number / 1e9:.4g} GB" if number >= 1e9 else f"{number / 1e6:.4g} MB"
