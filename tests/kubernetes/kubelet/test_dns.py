"""Proves dns.py: which names resolve, to which pods, and what stands on the wire and in files."""

import socket
import struct
from typing import Any

import pytest
from tests.kubernetes.kubelet.dns import (
    DnsServer,
    find,
    host_name,
    hosts_file,
    read_question,
    reply,
    resolv_conf,
)

Json = dict[str, Any]


def service(name: str, **spec: Any) -> Json:
    spec = {"clusterIP": "None", "selector": {"job": "ring"}} | spec
    return {"metadata": {"namespace": "team", "name": name}, "spec": spec}


def pod(number: int, *, ready: bool = True, **status: Any) -> Json:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {
        "metadata": {"namespace": "team", "name": f"p-{number}", "labels": {"job": "ring"}},
        "spec": {"hostname": f"ring-{number}", "subdomain": "ring"},
        "status": {"podIP": f"10.88.0.{number}", "phase": "Running", "conditions": [condition]}
        | status,
    }


PODS = [pod(1), pod(2), pod(3, ready=False), pod(4, phase="Succeeded"), pod(5, podIP=None)]
SERVICES = [service("ring"), service("early", publishNotReadyAddresses=True)]


@pytest.mark.parametrize(
    ("name", "last_parts"),
    [
        ("ring.team.svc.cluster.local", [1, 2]),
        ("RING.team.svc.cluster.local.", [1, 2]),
        ("early.team.svc.cluster.local", [1, 2, 3]),
        ("ring-1.ring.team.svc.cluster.local", [1]),
        ("ring-3.ring.team.svc.cluster.local", []),
        ("ring-9.ring.team.svc.cluster.local", []),
        ("ring-1.early.team.svc.cluster.local", []),
        ("10-88-0-7.team.pod.cluster.local", [7]),
        ("ring.other.svc.cluster.local", None),
        ("none.team.svc.cluster.local", None),
        ("a.ring-1.ring.team.svc.cluster.local", None),
        ("team.svc.cluster.local", None),
        ("ring", None),
        ("ring.team.svc", None),
        ("example.org", None),
    ],
)
def test_names(name: str, last_parts: list[int] | None) -> None:
    wanted = None if last_parts is None else [f"10.88.0.{number}" for number in last_parts]
    assert find(name, SERVICES, PODS) == wanted


def test_a_service_without_a_selector_has_no_pods() -> None:
    assert find("a.team.svc.cluster.local", [service("a", selector=None)], PODS) == []


def question(name: str, kind: int = 1) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!6H", 77, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def test_an_answer_has_a_record_for_each_address() -> None:
    asked = question("ring.team")
    assert read_question(asked) == ("ring.team", 1)
    said = reply(asked, ["10.88.0.1", "10.88.0.2"])
    number, flags, *counts = struct.unpack_from("!6H", said)
    assert (number, counts) == (77, [1, 2, 0, 0])
    assert flags & 0x8000, "it is an answer"
    assert flags & 0x0100, "recursion was desired"
    assert flags & 0x000F == 0
    assert said[12 : len(asked)] == asked[12:]
    assert [socket.inet_ntoa(said[end - 4 : end]) for end in (len(asked) + 16, len(said))] == [
        "10.88.0.1",
        "10.88.0.2",
    ]


@pytest.mark.parametrize(("addresses", "code"), [(None, 3), ([], 3), (["none"], 0)])
def test_answers_without_a_record(addresses: list[str] | None, code: int) -> None:
    """NXDOMAIN for no name; a name that has no address of the asked type is no error."""
    said = reply(question("ring", kind=28), addresses)
    _, flags, _, records, _, _ = struct.unpack_from("!6H", said)
    assert (flags & 0x000F, records) == (code, 0)


def test_a_server_waits_for_a_starting_pod_and_answers_others_meanwhile() -> None:
    starting: list[list[str]] = [[], [], ["10.88.0.1"]]

    def look_up(name: str) -> list[str] | None:
        if name == "known":
            return ["10.88.0.9"]
        return starting.pop(0) if len(starting) > 1 else starting[0]

    here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    here.bind(("127.0.0.1", 0))
    DnsServer(here, look_up, patience_s=60.0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
        caller.settimeout(30)
        caller.connect(here.getsockname())
        caller.send(b"no message")
        caller.send(question("starting"))
        caller.send(question("known"))
        answers = {read_question(said)[0]: said for said in (caller.recv(512), caller.recv(512))}
    assert answers["known"][-4:] == socket.inet_aton("10.88.0.9")
    assert answers["starting"][-4:] == socket.inet_aton("10.88.0.1")


def test_files_of_a_pod() -> None:
    one = pod(1)
    one["spec"]["hostAliases"] = [{"ip": "10.1.1.1", "hostnames": ["a", "b"]}]
    assert hosts_file(one, "10.88.0.1").splitlines()[-2:] == [
        "10.88.0.1\tring-1.ring.team.svc.cluster.local ring-1",
        "10.1.1.1\ta b",
    ]
    assert resolv_conf("team", "10.88.255.254", {}) == (
        "nameserver 10.88.255.254\n"
        "search team.svc.cluster.local svc.cluster.local cluster.local\n"
        "options ndots:5\n"
    )
    own = {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"], "options": [
        {"name": "ndots", "value": "2"}, {"name": "edns0"}]}}  # fmt: skip
    assert resolv_conf("team", "10.88.255.254", own) == (
        "nameserver 1.1.1.1\noptions ndots:2 edns0\n"
    )


def test_a_long_name_is_cut_to_63_bytes_without_a_dash_at_its_end() -> None:
    assert host_name({"metadata": {"name": "a" * 62 + "-b"}, "spec": {}}) == "a" * 62
    assert host_name({"metadata": {"name": "p"}, "spec": {"hostname": "own"}}) == "own"
