"""Does a tunnel carry what its headers leave, and are they counted on the link below?"""

from typing import Any

import pytest
from tests.platforms.emulated.wire_bytes import assert_counted, payload_on_the_wire

from broadgauge.agent.emulated import overlay
from broadgauge.agent.emulated.addresses import overlay_address, overlay_hardware_address
from broadgauge.specs.networks.network import VXLAN_HEADER_BYTES

PAYLOAD_BYTES = 127 * 65_537


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
def test_a_full_queue_below_a_tunnel_sends_at_its_rate(
    judge_queues: Any, rate_gbps: float, mtu: int
) -> None:
    """98 to 101 % of the line rate, the tunnel's own headers with it."""
    link = {"rate_gbps": rate_gbps, "mtu": mtu}
    judge_queues({"": {"link": link, "line_gbps": rate_gbps}}, has_overlay=True)


@pytest.mark.namespaces
@pytest.mark.parametrize(("rate_gbps", "mtu"), [(1.0, 1500), (1.0, 9000), (None, 1500)])
def test_every_segments_headers_are_counted(
    run_case: Any, rate_gbps: float | None, mtu: int
) -> None:
    """Also where segmentation offload keeps them together, and on both ends of the link."""
    answer = run_case(
        "counters", rate_gbps=rate_gbps, mtu=mtu, payload_bytes=PAYLOAD_BYTES, has_overlay=True
    )
    assert answer["arrived"] == PAYLOAD_BYTES
    assert_counted(answer, payload_on_the_wire(PAYLOAD_BYTES, mtu, VXLAN_HEADER_BYTES), mtu)
    assert [nic["device"] for nic in answer["sender"]["nics"]] == ["eth0"]


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
