"""Proves agent/netlink.py: how parts are cut. pod/test_addresses.py has it change a kernel's."""

from broadgauge.agent import netlink


def test_what_the_kernel_answers_ends_where_it_is_cut() -> None:
    """No endless loop over a part without a length."""
    assert list(netlink.attributes(bytes(64))) == []
    assert list(netlink.attributes(netlink.attribute(7, b"12345") + b"\1")) == [(7, b"12345")]
