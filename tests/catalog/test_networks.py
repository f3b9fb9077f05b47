"""Proves catalog/networks.py."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broadgauge.catalog.networks import find_network, known_networks, parse_network
from broadgauge.specs.errors import InputError


def test_each_network_says_what_it_carries() -> None:
    for network in known_networks():
        carried = network.carried()
        low, value = carried.low_gbyte_per_s, carried.gbyte_per_s
        assert 0 < low <= value <= carried.high_gbyte_per_s, network.name
        nominal = network.node_nominal_gbps
        assert nominal is None or carried.high_gbyte_per_s <= nominal / 8, network.name


@pytest.mark.parametrize(
    ("text", "transport", "nominal_gbps", "nics"),
    [
        ("roce-400g", "roce", 400, 1),
        ("roce-400g*8", "roce", 400, 8),
        ("tcp-25g", "tcp", 25, 1),
        ("eth-25g", "tcp", 25, 1),
        ("ib-ndr*8", "infiniband", 400, 8),
        ("infiniband-200g x4", "infiniband", 200, 4),
        ("efa-3.2t", "efa", 3200, 1),
        ("efa-400g", "efa", 100, 4),
        ("sriov-rdma-100g", "roce", 100, 1),
        ("vnic-50g*2", "virtio", 50, 2),
    ],
)
def test_any_transport_rate_and_number_of_nics(
    text: str, transport: str, nominal_gbps: float, nics: int
) -> None:
    network = find_network(text)
    assert network.transport == transport
    assert network.nominal_gbps == nominal_gbps
    assert network.nics == nics
    assert network.source


def test_rdma_carries_its_share_of_nominal_and_nics_add_up() -> None:
    one, eight = find_network("roce-400g").carried(), find_network("roce-400g*8").carried()
    assert one.gbyte_per_s == pytest.approx(0.8 * 50)
    assert eight.gbyte_per_s == pytest.approx(8 * 0.8 * 50)


def test_sockets_are_bound_by_their_communicator_until_the_nic_is_full() -> None:
    network = find_network("tcp-400g")
    assert network.carried(1).gbyte_per_s == pytest.approx(4)
    assert network.carried(4).gbyte_per_s == pytest.approx(16)
    assert network.carried(64).gbyte_per_s == pytest.approx(0.8 * 50)


def test_a_pod_network_is_known_within_a_factor_of_three_only() -> None:
    carried = find_network("pod").carried()
    assert carried.high_gbyte_per_s / carried.gbyte_per_s == pytest.approx(3, rel=0.1)
    assert carried.gbyte_per_s / carried.low_gbyte_per_s == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("roce-0g", "zero bandwidth"),
        ("roce-999999999999g", "a NIC of 999,999,999,999 Gbit/s"),
        ("roce-400g*0", "at least one NIC"),
        ("rocce-400g", "did you mean `roce-400g`"),
        ("carrier-pigeon", "roce-400g\\*8"),
    ],
)
def test_what_can_not_be_is_told(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        find_network(text)


def test_another_form_is_no_network() -> None:
    assert parse_network("pigeon-10g") is None


@settings(max_examples=60, deadline=None)
@given(
    transport=st.sampled_from(["roce", "infiniband", "efa", "tcp", "sriov-tcp", "virtio"]),
    rate_gbps=st.integers(1, 1600),
    nics=st.integers(1, 16),
    communicators=st.integers(1, 64),
)
def test_more_nics_rate_or_communicators_never_carry_less(
    transport: str, rate_gbps: int, nics: int, communicators: int
) -> None:
    network = find_network(f"{transport}-{rate_gbps}g*{nics}")
    assert (network.nominal_gbps, network.nics) == (rate_gbps, nics)
    carried = network.carried(communicators)
    assert carried.low_gbyte_per_s <= carried.gbyte_per_s <= carried.high_gbyte_per_s
    assert carried.high_gbyte_per_s <= rate_gbps * nics / 8
    more_nics = find_network(f"{transport}-{rate_gbps}g*{nics + 1}").carried(communicators)
    more_rings = network.carried(communicators + 1)
    for more in (more_nics, more_rings):
        assert more.gbyte_per_s >= carried.gbyte_per_s
    if network.is_rdma:
        faster = find_network(f"{transport}-{rate_gbps + 100}g*{nics}").carried(communicators)
        assert faster.gbyte_per_s > carried.gbyte_per_s
