"""Proves cni.py: an annotation's three forms, configurations, and failures in Multus' words."""

import json
from typing import Any

import pytest
from tests.kubernetes.kubelet.cni import (
    Attached,
    CniError,
    Selection,
    missing_definition,
    network_status,
    read_definition,
    sandbox_failure,
    selections,
)

from broadgauge.agent.pod.status import parse_status

RAIL = Selection(namespace="team", name="rail", interface="net1")


def definition(config: object, **annotations: str) -> dict[str, Any]:
    text = config if isinstance(config, str) else json.dumps(config)
    return {
        "metadata": {"name": "rail", "annotations": annotations},
        "spec": {"config": text},
    }


def test_a_comma_list_numbers_its_interfaces() -> None:
    found = selections(" rail , other/rail@roce0,rail", "team")
    assert [(one.full_name, one.interface) for one in found] == [
        ("team/rail", "net1"),
        ("other/rail", "roce0"),
        ("team/rail", "net3"),
    ]


def test_a_json_list_says_more() -> None:
    text = '[{"name": "a"}, {"name": "b", "namespace": "c", "interface": "x", "ips": ["1.2.3.4/8"],'
    first, second = selections(text + ' "mac": "02:00:00:00:00:01"}]', "team")
    assert first == Selection(namespace="team", name="a", interface="net1")
    assert second == Selection(
        namespace="c", name="b", interface="x", addresses=("1.2.3.4/8",), mac="02:00:00:00:00:01"
    )


@pytest.mark.parametrize("text", [None, "", "  "])
def test_no_annotation_asks_for_nothing(text: str | None) -> None:
    assert selections(text, "team") == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,,b", "Invalid network object"),
        ("a/b/c", "Invalid network object"),
        ("a@b@c", "Invalid network object"),
        ("Rail", "did not match comma-delimited format"),
        ("-rail", 'mismatch @ "-rail"'),
        ("[", "failed to parse pod Network Attachment Selection Annotation JSON format"),
        ('{"name": "a"}', "want a list of objects that have a name"),
        ('[{"interface": "a"}]', "want a list of objects"),
        ('[{"name": 5}]', "want a list of objects"),
        ('[{"name": "a", "interface": ["b"]}]', "want a list of objects"),
    ],
)
def test_an_annotation_that_can_not_be_read(text: str, says: str) -> None:
    with pytest.raises(CniError, match=says):
        selections(text, "team")


def test_a_list_of_plugins_is_its_first_one_and_those_chained() -> None:
    tuning = {"type": "tuning", "mtu": 4000}
    config = {"name": "wide", "plugins": [{"type": "macvlan", "ipam": {"type": "static"}}, tuning]}
    found = read_definition(RAIL, definition(config))
    assert (found.kind, found.config["name"], found.chained) == ("macvlan", "wide", (tuning,))
    assert found.ipam == {"type": "static"}
    assert found.resource is None


def test_the_name_is_the_definitions_and_the_resource_its_annotations() -> None:
    annotation = {"k8s.v1.cni.cncf.io/resourceName": "openshift.io/a"}
    found = read_definition(RAIL, definition({"type": "sriov"}, **annotation))
    assert (found.config["name"], found.resource, found.ipam) == ("rail", "openshift.io/a", {})


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("{not json", 'failed to parse config of "team/rail": error parsing configuration'),
        ("", "error parsing configuration"),
        ([], "want an object"),
        ({"plugins": []}, "no plugins in list"),
        ({"plugins": {}}, "no plugins in list"),
        ({"plugins": ["a"]}, "missing 'type'"),
        ({"name": "a"}, "missing 'type'"),
        ({"type": "wonder"}, r'failed to find plugin "wonder" in path \[/opt/cni/bin\]'),
        ({"plugins": [{"type": "macvlan"}, {"type": "wonder"}]}, 'plugin "wonder"'),
        ({"type": "tuning"}, 'plugin "tuning"'),
    ],
)
def test_a_configuration_that_can_not_be_used(config: object, says: str) -> None:
    with pytest.raises(CniError, match=says):
        read_definition(RAIL, definition(config))


def test_the_status_is_read_by_the_product() -> None:
    """agent/pod/status.py reads what a real Multus writes; so it must read this."""
    first = Attached(network="process-kubelet", interface="eth0", addresses=("10.88.0.5",),
                     mac="02:00:00:00:00:01", mtu_bytes=1500, is_default=True)  # fmt: skip
    second = Attached(network="team/rail", interface="net1", addresses=("10.1.0.5/24",),
                      mac="02:00:00:00:00:02", mtu_bytes=9000,
                      pci_address="0000:37:00.1")  # fmt: skip
    text = network_status([first, second])
    found = parse_status(text)
    assert [(one.name, one.interface) for one in found.networks] == [
        ("process-kubelet", "eth0"),
        ("team/rail", "net1"),
    ]
    raw = json.loads(text)
    assert [one.get("default") for one in raw] == [True, None]
    assert [one["mtu"] for one in raw] == [1500, 9000]
    assert [one["ips"] for one in raw] == [["10.88.0.5"], ["10.1.0.5"]]
    assert raw[1]["device-info"]["pci"] == {"pci-address": "0000:37:00.1"}


def test_a_failure_nests_the_words_of_runtime_and_multus() -> None:
    pod = {"metadata": {"namespace": "team", "name": "p", "uid": "u"}}
    early = sandbox_failure(pod, missing_definition(RAIL), "c1")
    assert early.startswith(
        "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for"
        ' sandbox "c1": plugin type="multus" name="multus-cni-network" failed (add): '
        "Multus: [team/p/u]: error loading k8s delegates k8s args: "
    )
    assert early.endswith('network-attachment-definitions.k8s.cni.cncf.io "rail" not found')
    late = sandbox_failure(pod, CniError("Link not found", "rail"), "c1")
    assert late.endswith(
        '[team/p/u:rail]: error adding container to network "rail": Link not found'
    )
