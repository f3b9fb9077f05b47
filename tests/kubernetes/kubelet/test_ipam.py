"""Proves ipam.py: ranges, exclusions and exhaustion of whereabouts, host-local and static."""

from typing import Any

import pytest
from tests.kubernetes.kubelet.ipam import AddressBook, IpamError

Json = dict[str, Any]


def whereabouts(text: str, **rest: Any) -> Json:
    return {"type": "whereabouts", "range": text, **rest}


def all_of(ipam: Json, node: str = "a") -> list[str]:
    """Every address that it gives, one to a pod, without the prefix."""
    book, found = AddressBook(), []
    while True:
        try:
            lease = book.allocate(ipam, owner=f"pod-{len(found)}/net1", node=node)
        except IpamError:
            return found
        found.append(lease.addresses[0].partition("/")[0])


@pytest.mark.parametrize(
    ("ipam", "last_parts"),
    [
        (whereabouts("10.1.0.0/29"), [1, 2, 3, 4, 5, 6]),
        (whereabouts("10.1.0.3/29"), [1, 2, 3, 4, 5, 6]),
        (whereabouts("10.1.0.3-10.1.0.5/24"), [3, 4, 5]),
        (whereabouts("10.1.0.0/24", range_start="10.1.0.9", range_end="10.1.0.10"), [9, 10]),
        (whereabouts("10.1.0.0/29", exclude=["10.1.0.0/30", "10.1.0.6/32"]), [4, 5]),
        (whereabouts("10.1.0.0/30", exclude=["10.1.0.0/24"]), []),
        ({"type": "host-local", "subnet": "10.1.0.0/29"}, [2, 3, 4, 5, 6]),
        (
            {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/29", "rangeStart": "10.1.0.3",
                                                "rangeEnd": "10.1.0.5", "gateway": "10.1.0.4"}]]},
            [3, 5],
        ),
    ],
)  # fmt: skip
def test_addresses_of_a_range(ipam: Json, last_parts: list[int]) -> None:
    assert all_of(ipam) == [f"10.1.0.{number}" for number in last_parts]


def test_an_exhausted_range_says_so_in_whereabouts_words_until_a_pod_ends() -> None:
    book = AddressBook()
    ipam = whereabouts("10.1.0.0/30", exclude=["10.1.0.1/32"])
    first = book.allocate(ipam, owner="one/net1", node="a")
    assert first.addresses == ("10.1.0.2/30",)
    with pytest.raises(
        IpamError,
        match=r"Could not allocate IP in range: ip: 10.1.0.1 / - 10.1.0.2 / range: 10.1.0.0/30 / "
        r"excludeRanges: \[10.1.0.1/32\]",
    ):
        book.allocate(ipam, owner="one2/net1", node="b")
    book.release("one")
    assert book.allocate(ipam, owner="one2/net1", node="b") == first
    book.release("one")
    assert len(book.taken) == 1, "one2 is another pod"


def test_whereabouts_is_unique_in_the_cluster_and_host_local_on_a_node() -> None:
    book = AddressBook()
    local = {"type": "host-local", "subnet": "10.2.0.0/24"}
    for ipam, addresses in (
        (whereabouts("10.1.0.0/24"), ["10.1.0.1/24", "10.1.0.2/24"]),
        (local, ["10.2.0.2/24", "10.2.0.2/24"]),
    ):
        given = [book.allocate(ipam, owner=f"{node}/net1", node=node) for node in ("a", "b")]
        assert [one.addresses[0] for one in given] == addresses


def test_two_ranges_give_two_addresses_and_names_part_equal_ranges() -> None:
    book = AddressBook()
    both = {"type": "whereabouts", "ipRanges": [{"range": "10.1.0.0/24"}, {"range": "10.2.0.0/24"}]}
    found = book.allocate(both, owner="a/net1", node="a")
    assert found.addresses == ("10.1.0.1/24", "10.2.0.1/24")
    for name in ("red", "blue"):
        ipam = whereabouts("10.3.0.0/24", network_name=name)
        lease = book.allocate(ipam, owner=f"{name}/net1", node="a")
        assert lease.addresses == ("10.3.0.1/24",)


def test_the_annotation_can_ask_for_an_address() -> None:
    book = AddressBook()
    ipam = whereabouts("10.1.0.0/24")
    found = book.allocate(ipam, owner="a/net1", node="a", asked=["10.1.0.77/24"])
    assert found.addresses == ("10.1.0.77/24",)
    with pytest.raises(IpamError, match="Could not allocate"):
        book.allocate(ipam, owner="b/net1", node="b", asked=["10.1.0.77"])


def test_static_addresses_and_routes() -> None:
    ipam = {
        "type": "static",
        "addresses": [{"address": "10.9.0.1/24"}],
        "routes": [{"dst": "10.8.0.0/16", "gw": "10.9.0.254"}, {"dst": "10.7.0.0/16"}],
    }
    found = AddressBook().allocate(ipam, owner="a/net1", node="a")
    assert found.addresses == ("10.9.0.1/24",)
    assert found.routes == (("10.8.0.0/16", "10.9.0.254"), ("10.7.0.0/16", None))
    asked = AddressBook().allocate(ipam, owner="a/net1", node="a", asked=["10.9.0.5/24"])
    assert asked.addresses == ("10.9.0.5/24",)


def test_no_ipam_gives_no_address() -> None:
    assert AddressBook().allocate({}, owner="a/net1", node="a").addresses == ()


@pytest.mark.parametrize(
    ("ipam", "says"),
    [
        ({"type": "dhcp"}, r'failed to find plugin "dhcp" in path \[/opt/cni/bin\]'),
        ({"type": "whereabouts"}, "no range was given"),
        (whereabouts("10.1.0.0/33"), "invalid CIDR address: 10.1.0.0/33"),
        (whereabouts("fd00::/64"), "invalid CIDR address"),
        (whereabouts("10.1.0.0/24", range_start="x"), "invalid IP address: x"),
        (whereabouts("10.1.0.0/24", exclude=["x"]), "invalid CIDR address: x"),
        ({"type": "host-local"}, "invalid CIDR address: "),
        ({"type": "static", "addresses": [{"address": "10.1.0.1"}]}, "in CIDR notation"),
        ({"type": "static", "addresses": [{"address": "x/24"}]}, "got: 'x/24'"),
    ],
)
def test_what_can_not_be_given(ipam: Json, says: str) -> None:
    with pytest.raises(IpamError, match=says):
        AddressBook().allocate(ipam, owner="a/net1", node="a")
