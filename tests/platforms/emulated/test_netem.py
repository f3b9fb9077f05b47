"""Is netem told what `tc` would tell it, and does a link then delay and lose what it says?"""

import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.agent.emulated import ability_fixes
from broadgauge.agent.emulated.ability import probe_ability
from broadgauge.agent.emulated.ability_fixes import find_fix
from broadgauge.agent.emulated.netem import Netem, limit_packets, netem_options
from broadgauge.agent.emulated.shaping import (
    LinkPlan,
    htb_rate,
    receiving_plan,
    sending_plan,
)
from broadgauge.agent.emulated.traffic_control import (
    HtbLeaf,
    HtbTree,
    leaf_queue,
    queue_messages,
)

LIMIT_PACKETS = 123_456
PAYLOAD_BYTES = 300_007
DELAY_S, JITTER_S, LOSS_RATIO = 23e-3, 7e-3, 0.05
_KIND = "0a000100 6e6574656d00 0000 "
BY_TC = {
    # tc qdisc add dev v0 parent 1:10 handle 10: netem limit 123456 ARGUMENTS, iproute2 6.1.0:
    # what it sends behind index, handle and parent, by `strace -e sendmsg -e write=all`.
    "delay 23ms": (
        (23e-3, 0.0, 0.0),
        _KIND + "1c000200 cf7b0500 40e20100 00000000 00000000 00000000 00000000",
    ),
    "loss 5%": (
        (0.0, 0.0, 0.05),
        _KIND + "1c000200 00000000 40e20100 cdcccc0c 00000000 00000000 00000000",
    ),
    "delay 23ms 7ms loss 5% rate 10tbit": (
        (23e-3, 7e-3, 0.05),
        _KIND + "3c000200 cf7b0500 40e20100 cdcccc0c 00000000 00000000 3fab0100 "
        "0c000800 0054ce0923010000 14000600 ffffffff 00000000 00000000 00000000",
    ),
}


@pytest.mark.parametrize("arguments", BY_TC)
def test_the_kernel_is_told_what_tc_tells_it(arguments: str) -> None:
    (delay_s, jitter_s, loss_ratio), by_tc = BY_TC[arguments]
    netem = Netem(
        delay_s=delay_s, jitter_s=jitter_s, loss_ratio=loss_ratio, limit_packets=LIMIT_PACKETS
    )
    rate = htb_rate(1.0)
    leaves = (HtbLeaf(rate=rate, destination=None),)
    tree = HtbTree(rate=rate, leaves=leaves, fifo_bytes=0, netem=netem)
    _encode_a_class_first()
    [message] = queue_messages(3, tree, is_new=True)
    message.encode()
    sent = bytes(message.data)
    index_handle_parent = struct.pack("=iII", 3, 0x10_0000, 0x1_0010)
    assert sent[20:32] == index_handle_parent
    assert sent[36:].hex() == by_tc.replace(" ", "")
    assert netem_options(netem) in sent


def _encode_a_class_first() -> None:
    """As the kernel is told of classes before queues: pyroute2 keeps what it made of a kind."""
    from pyroute2.netlink.rtnl.tcmsg import tcmsg

    message = tcmsg()
    message["attrs"] = [["TCA_KIND", "htb"], ["TCA_OPTIONS", {"attrs": [["TCA_HTB_RATE64", 1]]}]]
    message.encode()


@given(st.floats(0.001, 400), st.floats(1e-6, 10), st.floats(1e-6, 10))
def test_a_longer_delay_or_a_faster_line_never_has_less_room(
    rate_gbps: float, one_s: float, other_s: float
) -> None:
    shorter_s, longer_s = sorted((one_s, other_s))
    room = limit_packets(rate_gbps, shorter_s, 0)
    assert (
        room <= limit_packets(rate_gbps, longer_s, 0) <= limit_packets(2 * rate_gbps, longer_s, 0)
    )
    under_way = rate_gbps * 1.25e8 * shorter_s / 1514
    assert room >= min(under_way, 2**32 - 1)


def test_delay_is_htbs_leaf_on_the_nodes_side_only() -> None:
    link = LinkPlan(rate_gbps=1.0, mtu=1500, delay_s=0.01)
    sending, receiving = sending_plan(link, {"10.80.0.2": 0.5}, 3).htb, receiving_plan(link).htb
    assert sending is not None
    assert receiving is not None
    assert leaf_queue(sending)[0] == "netem"
    assert leaf_queue(receiving)[0] == "bfifo"


def test_delay_without_a_rate_has_a_shaper_that_no_machine_reaches() -> None:
    link = LinkPlan(rate_gbps=None, mtu=1500, delay_s=0.01)
    tree = sending_plan(link, {}, 1).htb
    assert tree is not None
    assert tree.rate.bytes_per_s == 1_250_000_000_000
    assert receiving_plan(link).htb is None


def test_lost_packets_are_lost_one_by_one() -> None:
    lossy = LinkPlan(rate_gbps=1.0, mtu=1500, loss_ratio=0.01)
    assert sending_plan(lossy, {}, 1).gso_max_segments == 1
    delayed = LinkPlan(rate_gbps=1.0, mtu=1500, delay_s=0.01)
    assert sending_plan(delayed, {}, 1).gso_max_segments > 1000


@pytest.mark.namespaces
def test_nothing_arrives_before_its_delay(run_case: Any) -> None:
    """There and back for the handshake, there for the bytes. Or the kernel has no netem,
    and that is said with what helps."""
    seen = run_case("delayed", delay_s=DELAY_S, payload_bytes=PAYLOAD_BYTES)
    if not probe_ability().has_netem:
        [step, number, hint] = seen["refused"]
        assert step.startswith("give HTB of interface")
        assert step.endswith("netem")
        assert find_fix(step, number) == hint == ability_fixes.NETEM_FIX
        return
    assert seen["arrived"] == PAYLOAD_BYTES
    assert seen["seconds"] >= 3 * DELAY_S * 0.99


@pytest.mark.measured
@pytest.mark.namespaces
def test_the_link_delays_and_loses_what_it_says(run_case: Any) -> None:
    if not probe_ability().has_netem:
        pytest.skip("not judged: this kernel has no netem")
    seen = run_case("impaired", delay_s=DELAY_S, jitter_s=JITTER_S, loss_ratio=LOSS_RATIO)
    plain_s, delayed_s, jittered_s = seen["round_trips_s"]
    # A busy machine's timers are late, and never early.
    assert 2 * DELAY_S * 0.99 < delayed_s - plain_s < 2 * DELAY_S + 0.01
    # One packet is under way at a time: each draws for itself, and the median is the middle.
    assert 2 * (DELAY_S - 0.003) < jittered_s - plain_s < 2 * (DELAY_S + 0.003) + 0.01
    # What is under way fits the queue, and no packet overtakes another.
    assert seen["delayed"]["drops"] == 0
    assert seen["delayed"]["retransmits"] <= 5
    assert seen["jittered"]["retransmits"] <= 5
    if seen["plain"]["ratio"] >= 0.98:  # else this machine's timers are too late for any shaper
        assert seen["delayed"]["ratio"] == pytest.approx(1, rel=0.05)
    lost = seen["lost"]
    sent = lost["packets"] + lost["drops"]
    deviation = math.sqrt(LOSS_RATIO * (1 - LOSS_RATIO) * sent)
    assert lost["drops"] == pytest.approx(LOSS_RATIO * sent, abs=4 * deviation)
    assert lost["retransmits"] >= 0.8 * lost["drops"]
