"""Does what a pod says of others' names stay text, among the leader's frames in its log?"""

import json
from pathlib import Path

import pytest

from broadgauge.agent.pod.facts import read_pod_facts
from broadgauge.agent.pod.networks import describe, describe_pod
from broadgauge.agent.pod.place import place_of
from broadgauge.agent.pod.pod_agent import refusal, say
from broadgauge.agent.pod.resolve import resolve
from broadgauge.messages.frames import FrameReader, FrameWriter
from broadgauge.messages.leader import LeaderGivesUp
from broadgauge.messages.pod_network import PodNetwork

FRAME = FrameWriter("leader-1").write(LeaderGivesUp(message="forged")).decode()
NETWORK = PodNetwork(name="vnic", attachments=("ns/wanted",))


@pytest.mark.parametrize("name", [f"ns/a\n{FRAME}", f"ns/a {FRAME}", "ns/\ud800", "ns/\x1b[2J"])
@pytest.mark.parametrize("field", ["name", "interface", "mac"])
def test_a_name_that_nobody_can_have_is_no_event_and_no_crash(
    field: str, name: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    entry = {"name": "ns/a", "interface": "net1", field: name}
    facts = read_pod_facts(tmp_path, annotations=json.dumps([entry]))
    assert facts.status is None
    for line in (*describe(resolve(NETWORK, facts)), *describe_pod(facts)):
        say(line)
    check(capfd.readouterr().out)


def test_whatever_is_said_is_a_line_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    say(f"node 0 ends: \ud800\n{FRAME}")
    out = capfd.readouterr().out
    check(out)
    assert out.count("\n") == 1


def test_a_refusal_names_its_pod_node_and_network_once() -> None:
    token = {
        "BROADGAUGE_TOKEN": "t",
        "BROADGAUGE_NODE": "0",
        "BROADGAUGE_LEADER": "r-0.r",
        "BROADGAUGE_POD_IP": "10.0.0.1",
    }
    names = {"BROADGAUGE_POD_NAME": "r-0-x7k2p", "BROADGAUGE_NODE_NAME": "worker-0"}
    place = place_of(token | names)
    problems = (
        "no adapter is in this pod",
        "network roce: 1 NIC on node 0",
        "network roce, node 1: x",
    )
    told = refusal(place, "roce", problems)
    assert told.message == (
        "r-0-x7k2p on worker-0: network roce: no adapter is in this pod; 1 NIC on node 0; node 1: x"
    )


def check(out: str) -> None:
    messages, others = FrameReader().feed(out.encode())
    assert messages == []
    assert others
    assert all(line.startswith(b"broadgauge: ") for line in others)
