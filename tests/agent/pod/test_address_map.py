"""Proves agent/pod/address_map.py: the published file's lines, and what follows for a node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.agent.pod.address_map import AddressMapError, Route, parse_map, plan_for

PUBLISHED = """\
mini-scale-cjzbq-worker-2-4k44l:ens13:net1:10.249.65.9
mini-scale-cjzbq-worker-2-4k44l:ens14:net2:10.249.66.9
mini-scale-cjzbq-worker-2-4k44l:ens15:net3:10.249.67.9
mini-scale-cjzbq-worker-2-4k44l:ens16:net4:10.249.68.9
mini-scale-cjzbq-worker-2-4k44l:ens17:net5:10.249.69.9
"""
"""The article's five lines, without its ellipsis."""
TWO_SUBNETS = """\
# the master's virtual NIC is in another subnet than the workers'
master:ens13:net1:10.249.65.4

worker-1:ens13:net1:10.249.66.5
worker-1:ens14:net2:10.250.0.5
worker-2:ens13:net1:10.249.66.6
"""


def test_the_published_lines() -> None:
    rows = parse_map(PUBLISHED)
    assert [row.interface for row in rows] == ["net1", "net2", "net3", "net4", "net5"]
    assert {row.host for row in rows} == {"mini-scale-cjzbq-worker-2-4k44l"}
    assert (rows[0].device, str(rows[0].address)) == ("ens13", "10.249.65.9/24")


def test_a_node_gets_its_address_and_routes_to_the_same_interface_of_all_others() -> None:
    rows = parse_map(TWO_SUBNETS)
    (plan,) = plan_for(rows, "master")
    assert (plan.interface, str(plan.address)) == ("net1", "10.249.65.4/24")
    assert [str(route.to) for route in plan.routes] == ["10.249.66.5", "10.249.66.6"]
    assert {route.gateway for route in plan.routes} == {None}
    first, second = plan_for(rows, "worker-1")
    assert [str(route.to) for route in first.routes] == ["10.249.65.4", "10.249.66.6"]
    assert second.routes == ()
    assert plan_for(rows, "worker-1", ["net2"]) == (second,)


def test_a_name_is_taken_as_a_whole() -> None:
    """The article's script searches for the name anywhere in a line: worker-1 is in worker-10."""
    rows = parse_map("worker-10:e:net1:10.0.0.10\nworker-1:e:net1:10.0.0.1\n")
    (plan,) = plan_for(rows, "worker-1")
    assert str(plan.address.ip) == "10.0.0.1"
    with pytest.raises(AddressMapError, match="node 'worker' is not in the address map"):
        plan_for(rows, "worker")


def test_prefix_and_gateway_of_a_network_with_a_router() -> None:
    text = "a:e:net1:10.1.0.5/26:10.1.0.1\nb:e:net1:10.1.0.6/26:10.1.0.1\nc:e:net1:10.2.0.5/26\n"
    (plan,) = plan_for(parse_map(text), "a")
    beside, beyond = plan.routes
    assert str(plan.address) == "10.1.0.5/26"
    assert beside == Route(to=beside.to, gateway=None)
    assert (str(beyond.to), str(beyond.gateway)) == ("10.2.0.5", "10.1.0.1")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no line in it"),
        ("# nothing\n", "no line in it"),
        ("a:e:net1\n", r"map.yaml:1: 'a:e:net1' has 3 columns"),
        ("\na:e:net1:1.2.3.4:1.2.3.1:x\n", r"map.yaml:2: .* has 6 columns"),
        ("a b:e:net1:1.2.3.4\n", "'a b' is no node's name"),
        ("$(id):e:net1:1.2.3.4\n", "is no node's name"),
        ("a:e:a-name-too-long-x:1.2.3.4\n", "is no interface's name"),
        ("a:../x:net1:1.2.3.4\n", "is no device's name"),
        ("a:e:net1:1.2.3\n", "no IPv4 address"),
        ("a:e:net1:1.2.3.4/40\n", "no IPv4 address"),
        ("a:e:net1:224.0.0.1\n", "is no address that an interface can have: it is of multicast"),
        ("a:e:net1:0.0.0.0\n", "0/8 is no host's"),
        ("a:e:net1:127.0.0.1\n", "127/8 is the loopback's"),
        ("a:e:net1:255.255.255.255\n", "240/4 is reserved"),
        ("a:e:net1:10.0.0.0/24\n", "'10.0.0.0/24' .* is the address of the subnet 10.0.0.0/24"),
        ("a:e:net1:10.0.0.64/26\n", "is the address of the subnet 10.0.0.64/26"),
        ("\na:e:net1:10.0.0.255\n", "map.yaml:2: .* the broadcast address of 10.0.0.0/24"),
        ("a:e:net1:10.0.0.1/0\n", "a prefix of 8 bits or more"),
        ("a:e:net1:10.0.0.1/0.0.0.255\n", "0.0.0.255 is no prefix length"),
        ("a:e:net1:10.0.0.1/\n", "is no prefix length"),
        ("a:e:net1:1.2.3.4/24:1.2.3.4\n", "the gateway can't be 1.2.3.4: the NIC's own"),
        ("a:e:net1:1.2.3.4/24:1.2.3.0\n", "can't be 1.2.3.0: it is the address of the subnet"),
        ("a:e:net1:1.2.3.4/24:1.2.3.255\n", "can't be 1.2.3.255: it is the broadcast address"),
        ("a:e:net1:1.2.3.4/24:x\n", "no IPv4 address"),
        ("a:e:eth0:1.2.3.4\n", "map.yaml:1: eth0 is the pod's own, .*\nhint: .* such as net1"),
        ("a:e:lo:1.2.3.4\n", "lo is the pod's own"),
        ("a:e:\x1b[31m:1.2.3.4\n", "is no interface's name"),
        ("a:e:net1:1.2.3.4\x0bb:e:net1:1.2.3.5\n", "has 7 columns"),
        ("a:e:net1:1.2.3.4/24:1.2.4.1\n", "the gateway 1.2.4.1 is not in 1.2.3.0/24"),
        ("a:e:net1:1.2.3.4\nb:e:net1:1.2.3.4\n", "map.yaml:2: 1.2.3.4 is given twice, in line 1"),
        ("a:e:net1:1.2.3.4\na:f:net1:1.2.3.5\n", "map.yaml:2: net1 of a stands in line 1 too"),
        ("apiVersion: v1\ndata:\n", "map.yaml:1: 'apiVersion: v1' has 2 columns"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, says: str) -> None:
    with pytest.raises(AddressMapError, match=f"(?s){says}"):
        parse_map(text, "map.yaml")


def test_what_can_be_is_taken() -> None:
    text = "\ufeffa:e:net1:10.0.0.0/31\r\n"
    text += "b:e:net1:10.0.0.1/31\nc:e:net1:10.0.0.3/32\nd:e:net1:10.1.0.0/8\n"
    assert [str(row.address) for row in parse_map(text)] == [
        "10.0.0.0/31", "10.0.0.1/31", "10.0.0.3/32", "10.1.0.0/8"
    ]  # fmt: skip


def test_what_the_map_does_not_know_has_a_hint() -> None:
    rows = parse_map(TWO_SUBNETS)
    with pytest.raises(AddressMapError) as caught:
        plan_for(rows, "worker-11")
    assert str(caught.value) == (
        "node 'worker-11' is not in the address map\nhint: did you mean `worker-1`?"
    )
    with pytest.raises(AddressMapError) as caught:
        plan_for(rows, "master", ["net1", "net7"])
    assert str(caught.value) == (
        "the address map has no line for net7 of node master\nhint: it has net1"
    )


CELLS = st.text(alphabet="abz019-./:# \t$`'\"é\n", max_size=16)
LINES = st.lists(CELLS, max_size=6).map(":".join)


@given(st.lists(st.one_of(LINES, st.text(max_size=40), st.just("a:e:net1:10.0.0.1"))))
def test_any_text_is_a_map_or_an_error_of_its_own(lines: list[str]) -> None:
    try:
        rows = parse_map("\n".join(lines))
    except AddressMapError:
        return
    for row in rows:
        assert not set(row.host + row.interface + row.device) & set(" \t\n/:$`'\"#")
        assert plan_for(rows, row.host)


HOSTS = st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z0-9]", fullmatch=True)


@given(st.lists(HOSTS, min_size=1, max_size=8, unique=True), st.integers(1, 4))
def test_every_node_has_a_route_to_every_other_by_each_interface(
    hosts: list[str], num_nics: int
) -> None:
    text = "".join(
        f"{host}:ens{nic}:net{nic}:10.{nic}.{node % 2}.{node + 1}\n"
        for node, host in enumerate(hosts)
        for nic in range(1, num_nics + 1)
    )
    rows = parse_map(text)
    for host in hosts:
        plans = plan_for(rows, host)
        assert len(plans) == num_nics
        for plan in plans:
            others = {r.address.ip for r in rows if r.interface == plan.interface} - {
                plan.address.ip
            }
            assert {route.to for route in plan.routes} == others
            assert len(plan.routes) == len(hosts) - 1
