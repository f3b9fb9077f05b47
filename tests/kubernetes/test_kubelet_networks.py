"""Proves the networks of the process kubelet: rates, attachments, addresses, a VPC's filter."""

import json
from typing import Any

import pytest
from tests.kubernetes.kubelet.client import Kubelet, KubeletFailedError
from tests.kubernetes.kubelet.config import Fabric, NodeSpec
from tests.kubernetes.pods import Pods, pod_manifest
from tests.platforms.emulated.attempts import Attempt, Ticks, attempt, until_they_agree
from tests.platforms.emulated.judging import assert_reached

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

SERVE = """
import socket, time

def ticks():
    each = [int(n) for n in open("/proc/stat").readline().split()[1:9]]
    return each[7], sum(each)

with socket.create_server(("0.0.0.0", 5000)) as server:
    print("listening", flush=True)
    connection, _ = server.accept()
    count, first, (stolen, every) = 0, None, ticks()
    while data := connection.recv(1 << 16):
        if first is not None:
            count += len(data)
        elif len(data) < 1 << 16:  # what waited is taken: from here on the network brings it
            first = time.monotonic()
    seconds = time.monotonic() - first
    stolen_after, every_after = ticks()
    print(count * 8 / seconds / 1e9, seconds, stolen_after - stolen, every_after - every)
"""
SEND = """
import socket, sys
connection = socket.create_connection((sys.argv[1], 5000))
for _ in range(int(sys.argv[2])):
    connection.sendall(bytes(1 << 16))
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


def transfer(
    pods: Pods, address: str, networks: str | None, num_blocks: int, expected_gbps: float = 1.0
) -> Attempt:
    """Of one TCP connection from net-0 to net-1."""
    pods.wait_log("server", "listening")
    sender = pod_manifest("sender", "", **on(0, networks))
    sender["spec"]["containers"][0]["command"] = [*python(SEND), address, str(num_blocks)]
    pods.run(sender)
    pods.wait_end("server")
    gbps, seconds, stolen, every = map(float, pods.log("server").split()[-4:])
    return attempt(gbps / expected_gbps, seconds, Ticks(int(stolen), 0, int(every)))


def reach(pods: Pods, expected_gbps: float, num_blocks: int, least: float) -> list[Attempt]:
    """One transfer over the pod network, more only where what was stolen explains its rate."""

    def measure(_: int) -> Attempt:
        start_server(pods)
        address = pods.get("server")["status"]["podIP"]
        found = transfer(pods, address, None, num_blocks, expected_gbps)
        for name in ("server", "sender"):
            pods.delete(name)
            pods.wait_gone(name)
        return found

    attempts = until_they_agree(measure, least, agreeing=1)
    assert_reached(attempts, least, agreeing=1)
    return attempts


def start_server(pods: Pods, networks: str | None = None) -> None:
    server = pod_manifest("server", "", **on(1, networks))
    server["spec"]["containers"][0]["command"] = python(SERVE)
    pods.apply(server)
    pods.wait_phase("server", "Running")


@pytest.mark.needs_cores
def test_the_pod_network_keeps_its_rate_and_takes_another_one(pods: Pods, kubelet: Kubelet) -> None:
    """The payload's part of the line at MTU 1500: 1448 of 1514 bytes (docs/architecture.md)."""
    payload_gbps = RATE_GBPS * 1448 / 1514
    before = kubelet.counters("pods", "net-0")["tx_bytes"]
    attempts = reach(pods, payload_gbps, 200, 0.93)
    sent = kubelet.counters("pods", "net-0")["tx_bytes"] - before
    assert max(each["ratio"] for each in attempts) < 1.03
    assert 1.0 < sent / len(attempts) / (200 << 16) / (1514 / 1448) < 1.02
    rate_gbps = attempts[-1]["ratio"] * payload_gbps
    kubelet.shape("pods", 4 * RATE_GBPS)
    try:
        faster = reach(pods, 4 * rate_gbps, 800, 0.9)
    finally:
        kubelet.shape("pods", RATE_GBPS)
    assert max(each["ratio"] for each in faster) < 1.05


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
    transfer(pods, "10.30.0.1", "rail", 400)
    sent = kubelet.counters("open", "net-0")["tx_bytes"] - before
    assert sent > 400 << 16, "not over the pod network"
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
        pods.apply(pod_manifest(f"pod-{number}", "sleep 100", **on(number % 2, form)))
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


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("{not json", "error parsing configuration"),
        ({"type": "host-device"}, 'specify either "device"'),
        ({"type": "host-device", "device": "ens99"}, "Link not found"),
        ({"type": "macvlan", "master": "ens99"}, 'failed to lookup master "ens99": Link not found'),
        ({"type": "macvlan", "master": "ens13", "mtu": 9500}, "invalid MTU 9500"),
        ({"type": "wonder"}, 'failed to find plugin "wonder" in path [/opt/cni/bin]'),
        (None, "cannot find a network-attachment-definition (bad) in namespace"),
    ],
)
def test_an_attachment_that_can_not_be_made_is_an_event_in_multus_words(
    pods: Pods, config: object, words: str
) -> None:
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
    foreign = ask.format(own="10.20.0.77", other="10.20.0.6", limit_s=2, then="exit 0")
    assert "unheard" in pods.run(pod_manifest("foreign", foreign, **on(0, "vnic"), **allowed))
    dropped = kubelet.counters("vpc", "net-0")["dropped_packets"]
    assert dropped > 0
    of_server = kubelet.counters("vpc", "net-1")["dropped_packets"]  # before it had its address
    right = ask.format(own="10.20.0.5", other="10.20.0.6", limit_s=30, then="exit 0")
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
        in_vain = python(connect.format(limit_s=1))
        pods.apply(pod_manifest("lost", "", main_command=in_vain, **on(0)))
        pods.wait_end("lost")
        assert pods.phase("lost") == "Failed"
    finally:
        kubelet.pod_network("net-1", up=True)
    pods.run(pod_manifest("found", "", main_command=python(connect.format(limit_s=30)), **on(0)))


def test_an_unknown_fabric_is_refused(kubelet: Kubelet) -> None:
    with pytest.raises(KubeletFailedError, match="net-0 has no device at fabric none"):
        kubelet.counters("none", "net-0")
