"""Which case is compared with which? By agreement in everything that is not named, never a guess.

A selector names what may differ (`over: {network: reference}`: the network). All else agrees: the
workload, the backend, the shape, and the network, where both are on one. Of two cases of which one
has its ranks on one node and no network between them, the networks can't disagree.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.results.model import CaseSummary
from broadgauge.specs.case import Case
from broadgauge.specs.selector import CaseSelector


@dataclass(frozen=True, slots=True, kw_only=True)
class Partner:
    """The case to compare with, or why there is none."""

    summary: CaseSummary | None
    reason: str = ""
    is_itself: bool = False
    """The case is its own partner: what the others are compared with."""


def partner_of(summary: CaseSummary, over: CaseSelector, cases: Sequence[CaseSummary]) -> Partner:
    """The one case that `over` selects and that agrees with this one in everything else."""
    found = [
        other
        for other in cases
        if over.matches(other.case) and _agrees(over, summary.case, other.case)
    ]
    if len(found) == 1:
        return Partner(summary=found[0], is_itself=found[0] is summary)
    return Partner(
        summary=None, reason=_why_not_one(found, f"`over: {over.label}`", " and agrees in the rest")
    )


def one_case(selector: CaseSelector, cases: Sequence[CaseSummary]) -> Partner:
    """The one case that is meant."""
    found = [summary for summary in cases if selector.matches(summary.case)]
    if len(found) == 1:
        return Partner(summary=found[0])
    return Partner(summary=None, reason=_why_not_one(found, f"`{selector.label}`"))


def smallest_world(
    summary: CaseSummary, cases: Sequence[CaseSummary], *, needs_results: bool
) -> Partner:
    """The smallest world of the same workload: on the same network, or on one node.

    Itself where nothing is smaller. Of several smallest (paths inside one node) none is chosen.
    """
    case = summary.case
    smaller = [
        other
        for other in cases
        if other.case.world_size < case.world_size
        and other.case.workload.name == case.workload.name
        and (other.case.device, other.case.backend, other.case.arm, other.case.platform)
        == (case.device, case.backend, case.arm, case.platform)
        and not (case.link is None and other.case.link is not None)
        and _networks_agree(case, other.case)
        and case.storage_name == other.case.storage_name
        and (other.num_ok or not needs_results)
    ]
    if not smaller:
        return Partner(summary=summary, is_itself=True)
    smallest = min((other.case.world_size, other.case.nodes) for other in smaller)
    found = [other for other in smaller if (other.case.world_size, other.case.nodes) == smallest]
    if len(found) == 1:
        return Partner(summary=found[0])
    return Partner(summary=None, reason=_why_not_one(found, "the smallest world"))


def _agrees(over: CaseSelector, case: Case, other: Case) -> bool:
    """Do they differ in nothing but what `over` names?"""
    if over.shape is None and over.world_size is None:
        if over.nodes is None and case.nodes != other.nodes:
            return False
        if over.ranks_per_node is None and case.ranks_per_node != other.ranks_per_node:
            return False
    return (
        case.arm == other.arm
        and (over.platform is not None or case.platform == other.platform)
        and (over.workload is not None or case.workload.name == other.workload.name)
        and (over.backend is not None or case.backend == other.backend)
        and (over.network is not None or _networks_agree(case, other))
        and (over.storage is not None or case.storage_name == other.storage_name)
    )


def _networks_agree(case: Case, other: Case) -> bool:
    """By name: with as many NICs as nodes, one network differs from shape to shape."""
    if case.network is None or other.network is None:
        return True
    if (case.link is None) != (other.link is None):
        return True
    return case.plain_network_name == other.plain_network_name


def _why_not_one(found: Sequence[CaseSummary], what: str, more: str = "") -> str:
    if not found:
        return f"no case of this run is {what}{more}"
    labels = ", ".join(summary.case.label for summary in found[:3])
    return f"{len(found)} cases are {what}: {labels}{', …' if len(found) > 3 else ''}"
