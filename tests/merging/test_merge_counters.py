"""Is what the nodes used split into the ranks' part and that of other programs?"""

from dataclasses import replace

import pytest
from tests.merging.outcomes import between, counters

from broadgauge.merging.counters import intervals_by_label, nodes_use
from broadgauge.messages.counters import NicCounters
from broadgauge.messages.vocabulary import CounterKind
from broadgauge.specs.records.record import NodeUse

START = replace(counters(None, None), ranks_cpu_s=7.0)
"""Of two cores; intervals last a second."""


def use(**gains: float | None) -> NodeUse:
    marks = between("a", [START], [replace(START, **gains)])
    (node,) = nodes_use(list(intervals_by_label(marks).values()))
    return node


def test_what_neither_the_ranks_nor_softirq_used_is_foreign() -> None:
    node = use(cpu_user_s=1.0, cpu_system_s=0.3, cpu_softirq_s=0.2, ranks_cpu_s=7.5)
    assert node.ranks_cpu_s == pytest.approx(0.5)
    assert node.foreign_busy_ratio == pytest.approx((1.0 + 0.3 - 0.5) / 2)
    assert node.cpu_busy_ratio == pytest.approx(1.5 / 2)


def test_ranks_not_known_leave_the_foreign_part_unknown() -> None:
    node = use(cpu_user_s=1.0, ranks_cpu_s=None)
    assert (node.ranks_cpu_s, node.foreign_busy_ratio) == (None, None)


def test_what_the_hypervisor_took_is_a_share_of_the_cores() -> None:
    assert use(cpu_stolen_s=0.5).stolen_ratio is None  # not read at the start
    begin = replace(START, cpu_stolen_s=3.0)
    marks = between("a", [begin], [replace(begin, cpu_stolen_s=3.5)])
    (node,) = nodes_use(list(intervals_by_label(marks).values()))
    assert node.stolen_ratio == pytest.approx(0.25)
    assert node.cpu_busy_ratio == 0


def test_ticks_make_no_ratio_leave_its_bounds() -> None:
    assert use(cpu_user_s=0.5, ranks_cpu_s=7.52).foreign_busy_ratio == 0
    full = use(cpu_user_s=1.6, cpu_system_s=0.5)
    assert (full.cpu_busy_ratio, full.foreign_busy_ratio) == (1, 1)


def test_intervals_add_up() -> None:
    end = replace(START, cpu_user_s=1.0, ranks_cpu_s=7.5)
    marks = between("a", [START], [end]) + between("b", [START], [START])
    (node,) = nodes_use(list(intervals_by_label(marks).values()))
    assert node.foreign_busy_ratio == pytest.approx(0.5 / 4)


def nics(gained: int, *kinds: CounterKind | None) -> tuple[NicCounters, ...]:
    return tuple(
        NicCounters(name=f"eth{number}", tx_bytes=gained, rx_bytes=gained, kind=kind)
        for number, kind in enumerate(kinds)
    )


@pytest.mark.parametrize(
    ("kinds", "of_sum"),
    [
        ((CounterKind.SHAPER, CounterKind.SHAPER), CounterKind.SHAPER),
        ((CounterKind.QUEUE, CounterKind.INTERFACE), CounterKind.INTERFACE),
        ((CounterKind.QUEUE, None), None),
    ],
)
def test_a_sum_is_as_biased_as_the_worst_of_its_counters(
    kinds: tuple[CounterKind | None, ...], of_sum: CounterKind | None
) -> None:
    begin = replace(counters(0, 0), nics=nics(0, *kinds))
    end = replace(counters(16, 16), nics=nics(8, *kinds))
    (node,) = nodes_use(list(intervals_by_label(between("a", [begin], [end])).values()))
    assert tuple(nic.counted_by for nic in node.nics) == kinds
    assert node.counted_by is of_sum


def test_cores_that_were_not_counted_leave_all_that_rests_on_them_unknown() -> None:
    unknown = dict.fromkeys(("cpu_user_s", "cpu_system_s", "cpu_softirq_s"))
    begin = replace(START, **unknown)
    (node,) = nodes_use(list(intervals_by_label(between("a", [begin], [begin])).values()))
    assert (node.cpu_user_s, node.cpu_busy_ratio, node.foreign_busy_ratio) == (None, None, None)
