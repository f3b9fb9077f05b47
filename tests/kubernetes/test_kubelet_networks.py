"""Proves the networks of the process kubelet: rates, attachments, addresses, a VPC's filter."""

import json
from typing import Any

import pytest
from tests.kubernetes.kubelet.client import Kubelet, KubeletFailedError
from tests.kubernetes.kubelet.config import Fabric, NodeSpec
from tests.kubernetes.pods import Pods, pod_manifest
from tests.platforms.emulated.wire_bytes import least_seconds, payload_on_the_wire
from tests.sharding import one_of

pytestmark = [pytest.mark.kubernetes, pytest.mark.root, pytest.mark.namespaces]
SRIOV = "openshift.io/sriov_a"
STATUS = "k8s.v1.cni.cncf.io/network-status"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
RATE_GBPS = 0.2
RANGE = {"type": "whereabouts", "range": "10.30.0.0/29"}
VPC = {"net-0": "10.20.0.5/24", "net-1": "10.20.0.6/24"}
NODES = {
    "nodes": NodeSpec.several(2, prefix="net", resources={"cpu": "8"}),
    "pod_network": Fabric(name="pods", rate_gbps=RATE_GBPS),
    "fabrics": [
        Fabric(name="open", device="ens13", mtu_bytes=9000),
        Fabric(name="functions", device="ens14", num_vfs=1, resource=SRIOV),
        Fabric(name="vpc", device="ens15", addresses=VPC, only_given_addresses=True),
    ],
}

PAYLOAD_BYTES = 2 << 20
SERVE = """
import socket
with socket.create_server(("0.0.0.0", 5000)) as server:
    print("listening", flush=True)
    connection, _ = server.accept()
    count = 0
    while data := connection.recv(1 << 16):
        count += len(data)
    connection.sendall(b"all is here")
print(count)
"""
SEND = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], 5000))
begin_s = time.monotonic()
connection.sendall(bytes(int(sys.argv[2])))
connection.shutdown(socket.SHUT_WR)
assert connection.recv(100) == b"all is here"
print(time.monotonic() - begin_s)
"""


def define(pods: Pods, name: str, config: object, resource: str | None = None) -> None:
    """A NetworkAttachmentDefinition."""
    metadata: dict[str, Any] = {"name": name}
    if resource is not None:
        metadata["annotations"] = {"k8s.v1.cni.cncf.io/resourceName": resource}
    text = config if isinstance(config, str) else json.dumps({"cniVersion": "0.3.1"} | dict(config))
    pods.apply(
        {
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": metadata,
            "spec": {"config": text},
        }
    )  # fmt: skip


def attached(pods: Pods, name: str) -> dict[str, dict[str, Any]]:
    """The entries of the status by interface."""
    text = pods.get(name)["metadata"]["annotations"][STATUS]
    return {entry["interface"]: entry for entry in json.loads(text)}


def on(node: int, networks: str | None = None, **spec: Any) -> dict[str, Any]:
    annotations = {} if networks is None else {NETWORKS: networks}
    return {"nodeName": f"net-{node}", "annotations": annotations, **spec}


def python(code: str) -> list[str]:
    return ["python", "-c", code]


def transfer(pods: Pods, address: str, networks: str | None = None) -> float:
    """How long a TCP connection from net-0 to the server on net-1 took for PAYLOAD_BYTES."""
    pods.wait_log("server", "listening")
    command = [*python(SEND), address, str(PAYLOAD_BYTES)]
    seconds = float(pods.run(pod_manifest("sender", "", main_command=command, **on(0, networks))))
    pods.wait_end("server")
    assert pods.log("server").split()[-1] == str(PAYLOAD_BYTES)
    return seconds


def start_server(pods: Pods, networks: str | None = None) -> None:
    pods.apply(pod_manifest("server", "", main_command=python(SERVE), **on(1, networks)))
    pods.wait_phase("server", "Running")


def test_the_pod_network_is_never_faster_than_its_rate(pods: Pods, kubelet: Kubelet) -> None:
    """From the first byte's being sent to the last one's being confirmed a busy machine only adds.
    What its nodes sent is counted, with headers."""
    least_bytes = payload_on_the_wire(PAYLOAD_BYTES, 1500)
    for rate_gbps in (RATE_GBPS, RATE_GBPS / 4):
        kubelet.shape("pods", rate_gbps)
        before = kubelet.counters("pods", "net-0")["tx_bytes"]
        start_server(pods)
        seconds = transfer(pods, pods.get("server")["status"]["podIP"])
        assert seconds >= least_seconds(least_bytes, rate_gbps)
        assert kubelet.counters("pods", "net-0")["tx_bytes"] - before >= least_bytes
        for name in ("server", "sender"):
            pods.delete(name)
            pods.wait_gone(name)
    kubelet.shape("pods", RATE_GBPS)


def test_a_host_device_moves_into_the_pod_and_comes_back(pods: Pods, kubelet: Kubelet) -> None:
    define(pods, "rail", {"type": "host-device", "device": "ens13", "ipam": RANGE})
    start_server(pods, "rail")
    found = attached(pods, "server")
    assert list(found) == ["eth0", "net1"]
    assert found["net1"]["name"] == f"{pods.namespace}/rail"
    assert found["net1"]["ips"] == ["10.30.0.1"]
    assert found["net1"]["mtu"] == 9000
    assert found["net1"]["mac"] == found["net1"]["mac"].lower()
    pods.apply(pod_manifest("second", "true", **on(1, "rail")))
    message = pods.wait_event("second", "FailedCreatePodSandBox")
    assert (
        'error adding container to network "rail": failed to find host device: Link not' in message
    )
    assert pods.status("second")["state"]["waiting"]["reason"] == "ContainerCreating"
    before = kubelet.counters("open", "net-0")["tx_bytes"]
    transfer(pods, "10.30.0.1", "rail")
    sent = kubelet.counters("open", "net-0")["tx_bytes"] - before
    assert sent > PAYLOAD_BYTES, "not over the pod network"
    pods.wait_end("second")
    assert pods.phase("second") == "Succeeded", "the device is free again"


def test_the_annotation_has_three_forms_and_addresses_are_unique(pods: Pods) -> None:
    define(pods, "wide", {"type": "macvlan", "master": "ens13", "mtu": 4000, "ipam": RANGE})
    define(pods, "fixed", {"type": "macvlan", "master": "ens13", "ipam": {"type": "static"}})
    forms = (
        "wide",
        f"{pods.namespace}/wide@roce0",
        json.dumps([{"name": "wide"}, {"name": "fixed", "namespace": pods.namespace,
                                       "interface": "own", "ips": ["10.31.0.7/24"]}]),
    )  # fmt: skip
    for number, form in enumerate(forms):
        pods.apply(pod_manifest(f"pod-{number}", "sleep 3600", **on(number % 2, form)))
        pods.wait_phase(f"pod-{number}", "Running")
    found = [attached(pods, f"pod-{number}") for number in range(3)]
    assert [list(one) for one in found] == [["eth0", "net1"], ["eth0", "roce0"],
                                            ["eth0", "net1", "own"]]  # fmt: skip
    given = [one["ips"][0] for all_ in found for name, one in all_.items() if name != "eth0"]
    assert given == ["10.30.0.1", "10.30.0.2", "10.30.0.3", "10.31.0.7"]
    assert found[0]["net1"]["mtu"] == 4000


def test_virtual_functions_are_resources_with_pci_addresses(pods: Pods) -> None:
    define(pods, "vf", {"type": "sriov", "ipam": {}}, resource=SRIOV)
    asks = {"limits": {SRIOV: "1"}}
    said = pods.run(pod_manifest("taken", "echo $PCIDEVICE_OPENSHIFT_IO_SRIOV_A;"
                                 "cat /sys/class/net/net1/operstate", **on(0, "vf"),
                                 main_resources=asks))  # fmt: skip
    entry = attached(pods, "taken")["net1"]
    address = entry["device-info"]["pci"]["pci-address"]
    assert said.splitlines() == [address, "up"]
    assert "ips" not in entry
    pods.apply(pod_manifest("forgot", "true", **on(0, "vf")))
    message = pods.wait_event("forgot", "FailedCreatePodSandBox")
    assert "VF pci addr is required" in message


BAD = {
    "no JSON": ("{not json", "error parsing configuration"),
    "no device": ({"type": "host-device"}, 'specify either "device"'),
    "another device": ({"type": "host-device", "device": "ens99"}, "Link not found"),
    "another master": (
        {"type": "macvlan", "master": "ens99"},
        'failed to lookup master "ens99": Link not found',
    ),
    "a large MTU": ({"type": "macvlan", "master": "ens13", "mtu": 9500}, "invalid MTU 9500"),
    "another plugin": (
        {"type": "wonder"},
        'failed to find plugin "wonder" in path [/opt/cni/bin]',
    ),
    "no definition": (None, "cannot find a network-attachment-definition (bad) in namespace"),
}


@pytest.mark.parametrize("bad", one_of(BAD, "another device"))
def test_an_attachment_that_can_not_be_made_is_an_event_in_multus_words(
    pods: Pods, bad: str
) -> None:
    config, words = BAD[bad]
    if config is not None:
        define(pods, "bad", config)
    pods.apply(pod_manifest("stuck", "true", **on(0, "bad")))
    assert words in pods.wait_event("stuck", "FailedCreatePodSandBox")
    assert pods.phase("stuck") == "Pending"


def test_a_vpc_hears_only_the_address_that_it_gave(pods: Pods, kubelet: Kubelet) -> None:
    """A pod with the node's own address is heard; with another one it can't even ask for a MAC."""
    define(pods, "vnic", {"type": "host-device", "device": "ens15", "ipam": {}})
    allowed = {"main_securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}
    ask = (
        "ip address add {own}/24 dev net1 && echo {own} && python -c 'import socket;"
        'print(socket.create_connection(("{other}", 5000), {limit_s}))'
        "' || echo unheard; {then}"
    )
    listen = "python -m http.server 5000 --bind 0.0.0.0"
    serve = f"ip address add 10.20.0.6/24 dev net1; echo ready; exec {listen}"
    pods.apply(pod_manifest("server", serve, **on(1, "vnic"), **allowed))
    pods.wait_log("server", "ready")
    foreign = ask.format(own="10.20.0.77", other="10.20.0.6", limit_s=0.2, then="exit 0")
    assert "unheard" in pods.run(pod_manifest("foreign", foreign, **on(0, "vnic"), **allowed))
    dropped = kubelet.counters("vpc", "net-0")["dropped_packets"]
    assert dropped > 0
    of_server = kubelet.counters("vpc", "net-1")["dropped_packets"]  # before it had its address
    right = ask.format(own="10.20.0.5", other="10.20.0.6", limit_s=300, then="exit 0")
    assert "raddr=('10.20.0.6', 5000)" in pods.run(
        pod_manifest("right", right, **on(0, "vnic"), **allowed)
    )
    assert kubelet.counters("vpc", "net-0")["dropped_packets"] == dropped
    assert kubelet.counters("vpc", "net-1")["dropped_packets"] == of_server
    for number, rate_gbps in enumerate((1.0, None)):
        kubelet.shape("vpc", rate_gbps)
        before = kubelet.counters("vpc", "net-0")["dropped_packets"]
        again = pod_manifest(f"again-{number}", foreign, **on(0, "vnic"), **allowed)
        assert "unheard" in pods.run(again)
        assert kubelet.counters("vpc", "net-0")["dropped_packets"] > before


def test_a_node_can_be_cut_off_the_pod_network(pods: Pods, kubelet: Kubelet) -> None:
    start_server(pods)
    pods.wait_log("server", "listening")
    address = pods.get("server")["status"]["podIP"]
    kubelet.pod_network("net-1", up=False)
    connect = f"import socket; socket.create_connection(('{address}', 5000), {{limit_s}})"
    try:
        in_vain = python(connect.format(limit_s=0.2))
        pods.apply(pod_manifest("lost", "", main_command=in_vain, **on(0)))
        pods.wait_end("lost")
        assert pods.phase("lost") == "Failed"
    finally:
        kubelet.pod_network("net-1", up=True)
    pods.run(pod_manifest("found", "", main_command=python(connect.format(limit_s=300)), **on(0)))


def test_an_unknown_fabric_is_refused(kubelet: Kubelet) -> None:
    with pytest.raises(KubeletFailedError, match="net-0 has no device at fabric none"):
        kubelet.counters("none", "net-0")
