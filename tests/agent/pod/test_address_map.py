"""Proves agent/pod/address_map.py: the published file's lines, and what follows for a node."""

from ipaddress import IPv4Address, IPv4Interface

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costly import costly

from broadgauge.agent.pod.address_map import (
    AddressMapError,
    MappedNic,
    Route,
    parse_map,
    plan_for,
)

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
    indented = "".join(f"     {line}\r\n" for line in PUBLISHED.splitlines())
    assert parse_map(f"\ufeff{indented}") == rows


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
        ("", "no line in it\nhint: a line for each NIC: host:device:interface:ip"),
        ("# nothing\n", "no line in it"),
        ("a:e:net1\n", r"map.yaml:1: 'a:e:net1' has 3 columns\nhint: host:device:interface:ip"),
        ("...\n", r"map.yaml:1: '...' has 1 column\n"),
        ("\na:e:net1:1.2.3.4:1.2.3.1:x\n", r"map.yaml:2: .* has 6 columns"),
        ("a:e:net1:fd00::1\n", r"has 6 columns\nhint: .*; addresses are of IPv4"),
        ("apiVersion: v1\ndata:\n", "map.yaml:1: .* has 2 columns\nhint: only what the ConfigMap"),
        ("# x\nnodename_ip_mapping.yaml: |\n a:e:net1:1.2.3.4\n", "map.yaml:2: .*without the obj"),
        ("- a:e:net1:1.2.3.4\n", "'- a' is no node's name"),
        ("a b:e:net1:1.2.3.4\n", "'a b' is no node's name"),
        ("$(id):e:net1:1.2.3.4\n", "is no node's name"),
        ("a:e:a-name-too-long-x:1.2.3.4\n", "is no interface's name"),
        ("a:e:..:1.2.3.4\n", "'..' is no interface's name"),
        ("a:../x:net1:1.2.3.4\n", "is no device's name"),
        ("a:e,f:net1:1.2.3.4\n", "'e,f' is no device's name"),
        *((f"a:e:n{each}1:1.2.3.4\n", "is no interface's name") for each in ",=\"'$\\`"),
        ("a:e:net1:1.2.3\n", "'1.2.3' is no address of IPv4: "),
        ("a:e:net1:10.0.0.010\n", "no address of IPv4: Leading zeros are not permitted"),
        ("a:e:net1:1.2.3.4/40\n", "'1.2.3.4/40' is no address of IPv4: 40 is"),
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
        ("a:e:net1:1.2.3.4/24:x\n", "'x' is no address of IPv4"),
        ("a:e:net1:1.2.3.4/24:\n", "'' is no address of IPv4"),
        ("a:e:eth0:1.2.3.4\n", "map.yaml:1: eth0 is the pod's own, .*\nhint: .* such as net1"),
        ("a:e:lo:1.2.3.4\n", "lo is the pod's own"),
        ("a:e:net1:1.2.3.4/24:1.2.4.1\n", "the gateway 1.2.4.1 is not in 1.2.3.0/24"),
        ("a:e:net1:1.2.3.4\nb:e:net1:1.2.3.4\n", "map.yaml:2: 1.2.3.4 is given twice, in line 1"),
        ("a:e:net1:1.2.3.4\na:f:net1:1.2.3.5\n", "map.yaml:2: net1 of a stands in line 1 too"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, says: str) -> None:
    with pytest.raises(AddressMapError, match=f"(?s){says}"):
        parse_map(text, "map.yaml")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a:e:net1:1.2.3.4\na:e:\tnet2:1.2.3.5\n", "map.yaml:2: a tab as character 5\nhint: print"),
        ("\ta:e:net1:1.2.3.4\n", "map.yaml:1: a tab as character 1"),
        ("a:e:net1:1.2.3.4\t# this one\n", "map.yaml:1: a tab as character 17"),
        ("a:e:net1:\u00a01.2.3.4\n", r"map.yaml:1: U\+00A0 as character 10"),
        ("a:e:net1:1.2.3.\u0664\n", r"U\+0664 as character 16"),
        ("\u00e9:e:net1:1.2.3.4\n", r"U\+00E9 as character 1"),
        ("a:e:\x1b[31m:1.2.3.4\n", r"U\+001B as character 5"),
        ("a:e:net1:1.2.3.4\rb:e:net1:1.2.3.5\n", r"U\+000D as character 17"),
        ("a:e:net1:1.2.3.4\x0bb:e:net1:1.2.3.5\n", r"U\+000B as character 17"),
        ("a:e:net1:1.2.3.4\x00", r"U\+0000 as character 17"),
    ],
)
def test_what_only_looks_right_is_said_with_its_place(text: str, says: str) -> None:
    """Also on a terminal: nothing of it is repeated as it is."""
    with pytest.raises(AddressMapError, match=says) as caught:
        parse_map(text, "map.yaml")
    assert str(caught.value).replace("\n", "").isascii()
    assert str(caught.value).replace("\n", "").isprintable()


def test_what_can_be_is_taken() -> None:
    text = "a:e:net1:10.0.0.0/31 # \t\u2028 anything\n b : e : net1 : 10.0.0.1/31 \n"
    text += "c:e:net1:10.0.0.3/32\nd:e:net1:10.1.0.0/8"
    assert [str(row.address) for row in parse_map(text)] == [
        "10.0.0.0/31", "10.0.0.1/31", "10.0.0.3/32", "10.1.0.0/8"
    ]  # fmt: skip


def test_what_the_map_does_not_know_has_a_hint() -> None:
    rows = parse_map(TWO_SUBNETS)
    with pytest.raises(AddressMapError) as caught:
        plan_for(rows, "worker-11")
    assert str(caught.value) == (
        "node 'worker-11' is not in the address map\nhint: name each node that pods may come to as "
        "`kubectl get nodes` does; did you mean `worker-1`?"
    )
    with pytest.raises(AddressMapError) as caught:
        plan_for(rows, "master", ["net1", "net7"])
    assert str(caught.value) == (
        "the address map has no line for net7 of node master\nhint: it has net1"
    )


CELLS = st.text(alphabet="abz019-./:# \t$`'\",=\\é\n", max_size=16)
LINES = st.lists(CELLS, max_size=6).map(":".join)


@given(
    st.lists(
        st.one_of(LINES, st.text(max_size=40), st.just("a:e:net1:10.0.0.1")), min_size=1, max_size=4
    )
)
def test_any_text_is_a_map_or_an_error_of_its_own(lines: list[str]) -> None:
    try:
        rows, said = parse_map("\n".join(lines)), ""
    except AddressMapError as error:
        rows, said = (), error.message
    assert said.isprintable()
    assert bool(said) == (rows == ())
    for row in rows:
        assert not set(row.host + row.interface + row.device) & set(" \t\n/:$`'\"#,=\\")
        assert plan_for(rows, row.host)


@st.composite
def maps(draw: st.DrawFn) -> tuple[MappedNic, ...]:
    """Nodes with one to three NICs, a subnet for each second node of an interface, all routed or
    none."""
    hosts = draw(st.lists(st.from_regex(r"[a-z][a-z0-9-]{0,6}[a-z0-9]", fullmatch=True),
                          min_size=1, max_size=5, unique=True))  # fmt: skip
    prefix_length = draw(st.integers(16, 28))
    has_router = draw(st.booleans())
    nics = [
        (host, nic, IPv4Interface(f"10.{nic}{node % 2}.0.{node + 2}/{prefix_length}"))
        for node, host in enumerate(hosts)
        for nic in range(1, draw(st.integers(1, 3)) + 1)
    ]
    return tuple(
        MappedNic(
            line=line,
            host=host,
            device=f"ens{12 + nic}",
            interface=f"net{nic}",
            address=address,
            gateway=address.network[1] if has_router else None,
        )
        for line, (host, nic, address) in enumerate(nics, start=1)
    )


def written(row: MappedNic) -> str:
    gateway = "" if row.gateway is None else f":{row.gateway}"
    return f"{row.host}:{row.device}:{row.interface}:{row.address}{gateway}"


@costly(60)
@given(maps())
def test_what_is_written_is_read(rows: tuple[MappedNic, ...]) -> None:
    assert parse_map("\n".join(map(written, rows))) == rows


@costly(60)
@given(maps())
def test_every_nic_has_a_route_to_every_other_of_its_name_and_back(
    rows: tuple[MappedNic, ...],
) -> None:
    ways: set[tuple[IPv4Address, IPv4Address]] = set()
    for host in {row.host for row in rows}:
        own = [row for row in rows if row.host == host]
        plans = plan_for(rows, host)
        assert [(p.interface, p.address) for p in plans] == [(r.interface, r.address) for r in own]
        for row, plan in zip(own, plans, strict=True):
            ways |= {(plan.address.ip, route.to) for route in plan.routes}
            for route in plan.routes:
                is_beside = route.to in plan.address.network
                assert route.gateway == (None if is_beside else row.gateway)
    assert ways == {
        (one.address.ip, other.address.ip)
        for one in rows
        for other in rows
        if one.interface == other.interface and one.host != other.host
    }
