"""Does a tunnel carry what its headers leave, and are they counted on the link below?"""

from typing import Any

import pytest
from tests.platforms.emulated.judging import (
    is_reached,
    refuse_above,
    skip_where_the_host_is_the_bound,
)

from broadgauge.agent.emulated import overlay
from broadgauge.agent.emulated.addresses import overlay_address, overlay_hardware_address
from broadgauge.specs.network import VXLAN_HEADER_BYTES, payload_rate_gbps

PAYLOAD_BYTES = 1009 * 65_537


@pytest.mark.measured
@pytest.mark.parametrize(
    "user", ["root", pytest.param("ordinary", marks=pytest.mark.thorough)], indirect=True
)
@pytest.mark.namespaces
@pytest.mark.parametrize("mtu", [1500, 9000])
@pytest.mark.parametrize(
    "rate_gbps",
    [
        pytest.param(0.1, marks=pytest.mark.thorough),
        1.0,
        pytest.param(2.0, marks=pytest.mark.thorough),
    ],
)
def test_stream_delivers_the_payload_rate(run_case: Any, rate_gbps: float, mtu: int) -> None:
    """98 to 101 %: within 2 % of what specs/network.py computes."""
    expected_gbps = payload_rate_gbps(rate_gbps, mtu, VXLAN_HEADER_BYTES)
    link = {"rate_gbps": rate_gbps, "mtu": mtu}
    [point] = run_case("fidelity", least=0.98, points=[(link, expected_gbps)], has_overlay=True)
    refuse_above(point["ratios"], 1.01)
    if not is_reached(point["ratios"], 0.98):
        skip_where_the_host_is_the_bound(point, rate_gbps)
    assert is_reached(point["ratios"], 0.98), point


@pytest.mark.measured
@pytest.mark.namespaces
@pytest.mark.parametrize(("rate_gbps", "mtu"), [(1.0, 1500), (1.0, 9000), (None, 1500)])
def test_every_segments_headers_are_counted(
    run_case: Any, rate_gbps: float | None, mtu: int
) -> None:
    """Also where segmentation offload keeps them together, and on both ends of the link."""
    answer = run_case(
        "counters", rate_gbps=rate_gbps, mtu=mtu, payload_bytes=PAYLOAD_BYTES, has_overlay=True
    )
    on_the_wire = PAYLOAD_BYTES / payload_rate_gbps(1.0, mtu, VXLAN_HEADER_BYTES)
    sender, receiver = answer["sender"], answer["receiver"]
    assert answer["arrived"] == PAYLOAD_BYTES
    extra = sender["tcp_retransmits"] * (mtu + 14)
    assert sender["tx_bytes"] - extra == pytest.approx(on_the_wire, rel=0.01)
    assert receiver["rx_bytes"] == pytest.approx(sender["tx_bytes"], rel=0.001)
    assert receiver["tx_bytes"] == pytest.approx(sender["rx_bytes"], rel=0.001)
    assert sender["tx_packets"] >= PAYLOAD_BYTES // (mtu - 102)
    assert [nic["device"] for nic in sender["nics"]] == ["eth0"]


@pytest.mark.namespaces
def test_ranks_see_the_tunnel_and_cannot_send_more_than_fits(run_case: Any) -> None:
    seen = run_case("tunnels", mtu=1500, reshaped_mtu=9000)
    assert seen["addresses"] == [["10.144.0.1", "10.145.0.1"], ["10.144.0.2", "10.145.0.2"]]
    assert seen["resolved"] == "10.144.0.1"
    assert seen["nics"] == ["eth0", "eth1", "lo", "vxlan0", "vxlan1"]
    assert seen["mtus"] == [1450, 1450]
    assert seen["reshaped_mtus"] == [8950, 8950]
    assert seen["largest_datagrams"] == [1450 - 28, 8950 - 28]


def test_the_header_is_the_experiments() -> None:
    assert overlay.HEADER_BYTES == VXLAN_HEADER_BYTES


def test_tunnels_never_share_an_address() -> None:
    places = [(node, nic) for node in range(1000) for nic in range(16)]
    assert len({overlay_address(*place) for place in places}) == len(places)
    hardware = {overlay_hardware_address(*place) for place in places}
    assert len(hardware) == len(places)
    assert all(int(address[:2], 16) & 0b11 == 0b10 for address in hardware)
