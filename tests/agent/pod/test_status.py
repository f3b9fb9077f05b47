"""Proves agent/pod/status.py: Multus' annotation, and the downward API's file that holds it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.pod import pods

from broadgauge.agent.pod.status import (
    NetworkStatus,
    StatusError,
    parse_status,
    read_annotations,
    status_of,
)

MULTUS = """[{
    "name": "cbr0",
    "interface": "eth0",
    "ips": [
        "10.244.1.73"
    ],
    "mac": "16:52:e6:0e:a2:6a",
    "default": true,
    "dns": {}
},{
    "name": "default/rdmashared-net",
    "interface": "net1",
    "ips": [
        "192.168.2.5"
    ],
    "mac": "86:1d:96:ff:55:0d",
    "dns": {}
},{
    "name": "default/sriov-net",
    "interface": "net2",
    "dns": {},
    "device-info": {
        "type": "pci",
        "version": "1.1.0",
        "pci": {
            "pci-address": "0000:18:02.5",
            "pf-pci-address": "0000:18:00.0",
            "rdma-device": "mlx5_7"
        }
    }
}]"""
"""In the form of the network status annotation of Multus' quick start guide, with the device
information of its `DeviceInfo`."""


def test_multus_form() -> None:
    own, macvlan, function = parse_status(MULTUS).networks
    assert own.is_default
    assert (own.name, own.interface, own.addresses) == ("cbr0", "eth0", ("10.244.1.73",))
    assert macvlan == NetworkStatus(
        name="default/rdmashared-net",
        interface="net1",
        addresses=("192.168.2.5",),
        mac="86:1d:96:ff:55:0d",
    )
    assert (function.pci_address, function.rdma_device) == ("0000:18:02.5", "mlx5_7")


def interfaces(text: str) -> list[str | None]:
    found = status_of(read_annotations(text))
    assert found is not None
    return [each.interface for each in found.networks]


def test_downward_file_and_both_spellings() -> None:
    text = pods.status(pods.entry(1, "default/a", "10.0.0.1"))
    assert interfaces(text) == ["eth0", "net1"]
    old = pods.status(name="k8s.v1.cni.cncf.io/networks-status")
    assert interfaces(old) == ["eth0"]
    assert interfaces(old + text) == ["eth0", "net1"]


def test_no_annotation_is_no_status() -> None:
    assert status_of(read_annotations('other="value"\n')) is None
    assert status_of({}) is None


def test_quotes_of_go() -> None:
    text = 'a="tab\\t, quote \\", backslash \\\\, \\u00e9, \\x41, \\U0001f600, \\a"\n'
    assert read_annotations(text) == {"a": 'tab\t, quote ", backslash \\, é, A, 😀, \a'}


@pytest.mark.parametrize(
    ("text", "says"),
    [("no json", "is no JSON"), ("{}", "is no list"), ("[" * 100_000, "is no JSON")],
)
def test_what_is_no_status_is_said(text: str, says: str) -> None:
    with pytest.raises(StatusError, match=says):
        parse_status(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "entry 0: no object: 1"),
        ('[{"interface": "net1"}]', "entry 0: no name"),
        ('[{"name": "a", "interface": 3}]', "interface is no text: 3"),
        ('[{"name": "a", "ips": "10.0.0.1"}]', "ips is no list"),
        ('[{"name": "a", "device-info": {"pci": 1}}]', "device-info.pci: no object: 1"),
        (r'[{"name": "ns/a\n@bg2 x"}]', r"entry 0: name can't be 'ns/a\n@bg2 x'"),
        (r'[{"name": "ns/\ud800"}]', r"name can't be 'ns/\ud800'"),
        ('[{"name": "Ns/a"}]', "name can't be"),
        ('[{"name": "a/b/c"}]', "name can't be"),
        (r'[{"name": "a", "interface": "net1\n"}]', "interface can't be"),
        (r'[{"name": "a", "interface": "\u001b[2J"}]', "interface can't be"),
        ('[{"name": "a", "interface": "net 1"}]', "interface can't be"),
        ('[{"name": "a", "interface": "a/b"}]', "interface can't be"),
        ('[{"name": "a", "interface": ".."}]', "interface can't be"),
        ('[{"name": "a", "interface": "sixteen-letters-"}]', "interface can't be"),
        (r'[{"name": "a", "mac": "\r"}]', "mac can't be"),
        (
            r'[{"name": "a", "device-info": {"pci": {"rdma-device": "m\n"}}}]',
            "rdma-device can't be",
        ),
        ('[{"name": "a", "ips": [{"a": 1}]}]', "ips has {'a': 1}, which is no address"),
        (r'[{"name": "a", "ips": ["fe80::1%\n@bg2"]}]', "which is no address"),
    ],
)
def test_an_entry_that_cant_be_read_is_left_out_and_said(text: str, says: str) -> None:
    """The others count: it may be the entry of a network that nobody asks for."""
    found = parse_status(f'{text.removesuffix("]")}, {{"name": "b", "interface": "net2"}}]')
    assert [each.name for each in found.networks] == ["b"]
    (why,) = found.left_out
    assert says in why


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(VALUES)
def test_any_json_is_read_or_refused(value: object) -> None:
    try:
        found = parse_status(json.dumps(value))
    except StatusError:
        return
    assert all(each.name for each in found.networks)


@pytest.mark.parametrize(
    "name", ["cbr0", "k8s_pod_network", "ovn-kubernetes", "ns-1/a.b-c", "a" * 9]
)
def test_names_as_plugins_and_definitions_have_them(name: str) -> None:
    entries = [{"name": name, "interface": "net1-ab.c_d@e"}]
    [found] = parse_status(json.dumps(entries)).networks
    assert (found.name, found.interface) == (name, "net1-ab.c_d@e")


@given(st.text())
def test_any_text_is_lines_or_none(text: str) -> None:
    assert all(isinstance(value, str) for value in read_annotations(text).values())


@given(st.dictionaries(st.sampled_from(["a", "b.c/d"]), st.text(st.characters(codec="utf-8"))))
def test_what_is_quoted_is_read_back(annotations: dict[str, str]) -> None:
    lines = "".join(f"{name}={json.dumps(text)}\n" for name, text in annotations.items())
    outside = {n: t for n, t in annotations.items() if all(ord(each) < 0x10000 for each in t)}
    assert {n: read_annotations(lines).get(n) for n in outside} == outside
