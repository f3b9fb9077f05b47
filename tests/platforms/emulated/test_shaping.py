"""Does a shaped link carry what it says, and count what it carries?"""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.platforms.emulated.wire_bytes import (
    OTHER_BYTES,
    assert_counted,
    least_seconds,
    payload_on_the_wire,
)

from broadgauge.agent.emulated.metering import Meter
from broadgauge.agent.emulated.shaping import (
    GSO_MAX_BYTES,
    LinkPlan,
    burst_bytes,
    gso_max_bytes,
    htb_rate,
    receiving_plan,
    sending_plan,
    switch_buffer_bytes,
)
from broadgauge.agent.emulated.traffic_control import QdiscStatistics, htb_parameters

PAYLOAD_BYTES = 127 * 65_537  # primes: 8 MB that no other count is likely to equal
RESHAPED_BYTES = 1_000_003


def thorough(*values: float) -> Any:
    return pytest.param(*values, marks=pytest.mark.thorough)


@pytest.mark.measured
@pytest.mark.namespaces
@pytest.mark.parametrize(
    ("rate_gbps", "mtu"),
    [
        (0.1, 1500),
        thorough(0.1, 9000),
        thorough(1.0, 1500),
        (1.0, 9000),
        thorough(5.0, 1500),
        (5.0, 9000),
    ],
)
def test_a_full_queue_sends_at_its_rate(judge_queues: Any, rate_gbps: float, mtu: int) -> None:
    """98 to 101 % of the line rate, with every header: what a stream's payload is of that, the
    counters say."""
    link = {"rate_gbps": rate_gbps, "mtu": mtu}
    judge_queues({"": {"link": link, "line_gbps": rate_gbps}})


@pytest.mark.measured
@pytest.mark.namespaces
def test_directions_have_rates_of_their_own(judge_queues: Any) -> None:
    """What one node may send, and what the other may receive, where it is the slower."""
    sends = {"rate_gbps": 0.1, "receive_rate_gbps": 0.4}
    receives = {"rate_gbps": 0.4, "receive_rate_gbps": 0.1}
    judge_queues(
        {
            "sends": {"link": sends, "line_gbps": 0.1},
            "receives": {"link": receives, "line_gbps": 0.1, "is_receivers": True},
        }
    )


@pytest.mark.measured
@pytest.mark.namespaces
def test_a_reshape_changes_the_rate(judge_queues: Any) -> None:
    """In place, and by way of no shaping at all."""
    links = [(0.2, 1500, False), (0.1, 9000, False), (0.4, 9000, False), (0.2, 1500, True)]
    judge_queues(
        {
            f"{number}, {rate_gbps} Gbit/s": {
                "link": {"rate_gbps": rate_gbps, "mtu": mtu},
                "line_gbps": rate_gbps,
                "is_after_unshaped": is_after_unshaped,
            }
            for number, (rate_gbps, mtu, is_after_unshaped) in enumerate(links)
        }
    )


@pytest.mark.namespaces
@pytest.mark.parametrize(("rate_gbps", "mtu"), [(1.0, 1500), (1.0, 9000), (None, 1500)])
def test_counters_hold_bytes_and_headers(run_case: Any, rate_gbps: float | None, mtu: int) -> None:
    answer = run_case("counters", rate_gbps=rate_gbps, mtu=mtu, payload_bytes=PAYLOAD_BYTES)
    assert answer["arrived"] == PAYLOAD_BYTES
    assert_counted(answer, payload_on_the_wire(PAYLOAD_BYTES, mtu), mtu)


@pytest.mark.namespaces
def test_totals_go_on_over_a_reshape(run_case: Any) -> None:
    """None is counted twice where a qdisc goes and another comes, and none is forgotten."""
    plans = [(0.2, 1500), (0.1, 9000), (None, 9000), (None, 1500), (0.2, 1500)]
    parts = run_case("reshape", plans=plans, payload_bytes=RESHAPED_BYTES)
    for part, (rate_gbps, mtu) in zip(parts, plans, strict=True):
        at_start, at_end = part["at_start"], part["at_end"]
        assert part["arrived"] == RESHAPED_BYTES
        counted = at_end["tx_bytes"] - at_start["tx_bytes"]
        extra = (at_end["tcp_retransmits"] - at_start["tcp_retransmits"]) * (mtu + 14)
        least = payload_on_the_wire(RESHAPED_BYTES, mtu)
        assert least <= counted <= 1.05 * least + extra + OTHER_BYTES
        assert rate_gbps is None or part["seconds"] >= least_seconds(least, rate_gbps)
    for earlier, later in pairwise(parts):
        for name in ("tx_bytes", "rx_bytes", "tx_packets", "rx_packets", "overlimits"):
            assert later["at_start"][name] >= earlier["at_end"][name] > 0
        assert later["at_start"]["tx_bytes"] - earlier["at_end"]["tx_bytes"] < RESHAPED_BYTES


@pytest.mark.namespaces
def test_reshape_reaches_an_open_connection(run_case: Any) -> None:
    """All bytes arrive over the same connection, and none before its new rate lets it: from the
    first byte's being sent to the last one's being confirmed a busy machine only adds."""
    rates = [0.4, 0.1, 0.2]
    parts_s = run_case("living_connection", rates_gbps=rates, payload_bytes=RESHAPED_BYTES)
    for seconds, rate_gbps in zip(parts_s, rates, strict=True):
        assert seconds >= least_seconds(payload_on_the_wire(RESHAPED_BYTES, 1500), rate_gbps)


@given(st.floats(0.001, 10_000), st.floats(0.001, 10_000))
def test_a_faster_link_gets_no_smaller_bounds(one: float, other: float) -> None:
    slow, fast = sorted((one, other))
    assert burst_bytes(slow) <= burst_bytes(fast)
    assert switch_buffer_bytes(slow) <= switch_buffer_bytes(fast)
    assert gso_max_bytes(LinkPlan(rate_gbps=slow, mtu=1500)) <= gso_max_bytes(
        LinkPlan(rate_gbps=fast, mtu=1500)
    )
    assert gso_max_bytes(LinkPlan(rate_gbps=fast, mtu=9000)) <= GSO_MAX_BYTES


def test_the_node_sends_at_one_rate_and_its_switch_at_the_other() -> None:
    link = LinkPlan(rate_gbps=0.4, receive_rate_gbps=0.1, mtu=1500)
    sending, receiving = sending_plan(link, {}, 1).htb, receiving_plan(link).htb
    assert sending is not None
    assert receiving is not None
    assert sending.rate.bytes_per_s == 4 * receiving.rate.bytes_per_s == 50_000_000
    assert receiving.fifo_bytes == switch_buffer_bytes(0.1)
    with pytest.raises(ValueError, match="hint"):
        LinkPlan(rate_gbps=None, receive_rate_gbps=0.1, mtu=1500)


@given(st.floats(0.001, 10_000))
def test_burst_survives_the_kernels_ticks(rate_gbps: float) -> None:
    """The kernel keeps bursts in ticks of 64 ns of line rate."""
    rate = htb_rate(rate_gbps)
    seconds = htb_parameters(rate)["buffer"] * 64e-9
    granted = seconds * rate.bytes_per_s
    assert rate.burst_bytes <= granted <= rate.burst_bytes + 65e-9 * rate.bytes_per_s + 1


def test_rates_above_32_bits_are_capped_in_the_old_field() -> None:
    assert htb_parameters(htb_rate(40.0))["rate"] == 2**32 - 1
    assert htb_parameters(htb_rate(25.0))["rate"] == 3_125_000_000


@given(st.lists(st.integers(0, 2**31), min_size=1, max_size=50))
def test_meter_adds_up_over_wraps(steps: list[int]) -> None:
    meter, sent = Meter(), 0
    for step in steps:
        sent += step
        totals = meter.update(_statistics(num_bytes=sent, num_packets=sent % 2**32))
    assert totals.num_packets == totals.num_bytes == sent


def test_meter_goes_on_over_a_new_qdisc() -> None:
    meter = Meter()
    meter.update(_statistics(num_bytes=1000, num_packets=3))
    meter.restart()
    totals = meter.update(_statistics(num_bytes=10, num_packets=1))
    assert (totals.num_bytes, totals.num_packets) == (1010, 4)


@pytest.mark.parametrize(("rate_gbps", "mtu"), [(0.0, 1500), (-1.0, 1500), (1.0, 100)])
def test_impossible_links_are_refused(rate_gbps: float, mtu: int) -> None:
    with pytest.raises(ValueError, match="hint"):
        LinkPlan(rate_gbps=rate_gbps, mtu=mtu)


def _statistics(*, num_bytes: int, num_packets: int) -> QdiscStatistics:
    return QdiscStatistics(
        num_bytes=num_bytes, num_packets=num_packets, num_drops=0, num_overlimits=0, backlog_bytes=0
    )
