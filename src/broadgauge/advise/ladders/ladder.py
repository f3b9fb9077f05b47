"""What does a run say of its ladders of link rates? The types that tables and pages show."""

from dataclasses import dataclass

from broadgauge.messages.payload import VXLAN_HEADER_BYTES, payload_rate_gbps
from broadgauge.predict.sensitivity.ladder import RATE_ERROR_RATIO, Sensitivity
from broadgauge.results.model import CaseSummary
from broadgauge.specs.case import Case
from broadgauge.specs.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRate:
    """What a node's link carries."""

    rate_gbps: float
    """Line rate of all NICs, in the slower direction; or what was measured."""
    payload_gbps: float
    """What of it is payload."""
    error_ratio: float = RATE_ERROR_RATIO
    """How far it may be off, as a standard error over the rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutNetwork:
    """A network that is no rung."""

    summary: CaseSummary
    why: str
    step_s: float | None
    """Measured all the same; None where it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCost:
    """What the network costs at one rung, measured in two ways."""

    rate_gbps: float
    measured_s: Estimate
    """`network_cost_s`: the step less the same step with communication off."""
    curve_s: float
    """The step less the time that no network can remove."""
    is_apart: bool
    """By more than the intervals of both allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What the predictor says of one rung, without having seen it."""

    rate_gbps: float
    step_s: Estimate
    """With the predictor's own interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """One workload on several link rates."""

    label: str
    """`train 2x1`."""
    metric: str
    """What was taken for the time of a step; of a rate its inverse."""
    is_inverse: bool
    rungs: tuple[CaseSummary, ...]
    """From the slowest rate to the fastest, as in `found`; the last may be unshaped."""
    left_out: tuple[LeftOutNetwork, ...]
    rates_words: str
    """What its rates are, of networks that were found: `all_reduce of 64 MiB carried`. Empty: they
    were set."""
    found: Sensitivity | None
    """None: too few rungs."""
    why: str
    """Why there is nothing found."""
    counted_bytes: Estimate | None
    """Payload a step through the busiest node's link in its busier direction, by counters."""
    counted_how: str
    """What is in them beside the steps' payload; or why there are none."""
    is_counted_by_sample: bool
    """Of a command: its steps are not known, its samples are."""
    costs: tuple[NetworkCost, ...]
    """Empty where nothing was measured with communication off."""
    off_step_s: Estimate | None
    """A step with communication off, over all rungs."""
    predicted: tuple[Predicted, ...]
    predicted_found: Sensitivity | None
    """The same curve through what was predicted."""
    disagreements: tuple[str, ...]
    """Where two measurements of the same do not agree, in words."""
    notes: tuple[str, ...]


def node_rate_gbps(case: Case) -> float | None:
    """Line rate of a node, all NICs, in its slower direction; None where unshaped."""
    return None if case.link is None else case.link.node_rate_gbps


def node_payload_gbps(case: Case) -> float | None:
    """What of it is payload."""
    if case.link is None or case.link.payload_rate_gbps is None:
        return None
    return case.link.payload_rate_gbps * case.link.num_nics


def is_unshaped(case: Case) -> bool:
    """Is its link ours, without a rate?"""
    return case.link is not None and case.link.face is None and case.link.rate_gbps is None


def is_found(case: Case) -> bool:
    """Was its network there already, so that nobody sets its rate?"""
    return case.link is not None and case.link.face is not None


def carried_gbps(summary: CaseSummary) -> float | None:
    """What a node's NICs carried of plain TCP streams, one a NIC or eight in all, where no rate
    was set; None: not measured."""
    one, eight = _one_stream_gbps(summary), summary.eight_streams_gbps
    seen = [] if one is None else [one]
    seen += [] if eight is None else [eight.value]
    return max(seen, default=None)


def is_one_stream_most(summary: CaseSummary) -> bool:
    """Did one stream a NIC carry as much as eight in all, or were eight not measured?"""
    one = _one_stream_gbps(summary)
    return one is not None and one == carried_gbps(summary)


def carried_payload_gbps(summary: CaseSummary) -> float | None:
    """What of it is payload, as on a shaped link of its MTU."""
    carried = carried_gbps(summary)
    link = summary.case.link
    assert link is not None, "rungs have links"
    overlay_bytes = VXLAN_HEADER_BYTES if link.overlay else 0
    return None if carried is None else payload_rate_gbps(carried, link.mtu_bytes, overlay_bytes)


def _one_stream_gbps(summary: CaseSummary) -> float | None:
    """One over each NIC."""
    link = summary.case.link
    assert link is not None, "rungs have links"
    nics = link.num_nics if link.face is None else link.num_face_nics
    return None if summary.ceiling_gbps is None else summary.ceiling_gbps.value * nics
