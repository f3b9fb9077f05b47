"""What is known of a network between two machines that was there before, and what is said of it?"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.e2e.driving import only_run
from tests.platforms.hosts.machines import TOOL, Machines, Tool, experiment

from broadgauge.messages.waiting_limits import FACTOR_VARIABLE

pytestmark = [
    pytest.mark.root,
    pytest.mark.namespaces,
    pytest.mark.sshd,
    pytest.mark.slow,
]

RATE_GBPS = 0.2
"""Of the machines' network, which the tool is not told."""
UNKNOWN = re.compile(r"streams (is|are) unknown: ")
"""The note; a verdict may be unknown, too."""
FOUND = """\
name: hosts-test
platform: hosts
hosts: [{hosts}]
cluster: {{shapes: [2x1], device: cpu}}
networks:
  - {{name: wire, found: {{interface: eth0, nominal_gbps: 1 Gbit/s}}}}
workloads:
  - {{kind: collectives, name: large, ops: [all_reduce], sizes: [4 MiB], budget_s: 1 s}}
launches: 1
"""


def links(tool: Tool) -> list[Any]:
    assert [each["status"] for each in tool.records] == ["ok"] * len(tool.records)
    return [each["link"] for each in tool.records]


@contextmanager
def route(machines: Machines, machine: str, *words: str) -> Iterator[None]:
    """As a firewall does, with no more than what every kernel has."""
    machines.on(machine, "ip", "route", "add", *words)
    try:
        yield
    finally:
        machines.on(machine, "ip", "route", "del", *words)


@pytest.mark.measured
@pytest.mark.measuring
def test_a_found_network_that_is_full_is_what_collectives_wait_for(tool: Tool) -> None:
    """The streams carry what the line does, so that the verdict knows when it is full."""
    hosts = ", ".join(f"{{ssh: {name}, python: {TOOL[0]}}}" for name in ("node0", "node1"))
    tool.write(FOUND.format(hosts=hosts))
    tool.run("run", "e.yaml", command=TOOL)
    (link,) = links(tool)
    for figure in ("ceiling_gbps", "eight_streams_gbps"):
        assert link[figure] == pytest.approx(RATE_GBPS, rel=0.1), figure
    assert 0 < link["round_trip_s"] < 0.1
    assert link["congestion_control"]
    (case,) = json.loads(tool.run("show", "last", "--json", command=TOOL))["cases"]
    assert case["verdict"]["bound"] == "network-bound"
    assert "plain TCP stream" in case["verdict"]["sentence"]
    assert "of the 1 Gbit/s of its data sheet" in " ".join(case["verdict"]["evidence"])


def test_each_life_of_a_launch_measures_once(tool: Tool) -> None:
    tool.write(experiment())
    said = tool.run("run", "e.yaml")
    first, again, second, same = links(tool)
    assert (first, second) == (again, same)
    unknown = [link for link in (first, second) if (link or {}).get("eight_streams_gbps") is None]
    if unknown:  # others had the cores: then it is said
        assert UNKNOWN.search(" ".join(said.split()))
    else:
        assert first != second
        assert not UNKNOWN.search(" ".join(said.split()))


@pytest.mark.parametrize(
    ("machine", "words", "why"),
    [
        pytest.param(  # its answers are dropped
            *("node1", ("blackhole", "10.80.0.1"), "no answer in 4 s"),
            marks=pytest.mark.thorough,
        ),
        ("node0", ("prohibit", "10.80.0.2"), "does not reach 10.80.0.2 port"),
    ],
)
def test_behind_a_firewall_the_run_goes_on_and_says_what_is_not_known(
    tool: Tool, machine: str, words: tuple[str, ...], why: str
) -> None:
    """Where no preflight is wanted, which refuses it: these ranks send nothing to each other."""
    tool.write(experiment(launches=1) + "preflight: false\n")
    as_users_have_it = {FACTOR_VARIABLE: "1"} if "no answer" in why else {}
    with route(tool.machines, machine, *words):
        said = " ".join(tool.run("run", "e.yaml", **as_users_have_it).split())
    assert links(tool) == [None, None]
    note = "network slow: its round trip and the ceilings of one and eight streams are unknown:"
    assert said.count(note) == 1
    assert why in said
    (case, _) = json.loads(tool.run("show", str(only_run(tool.folder)), "--json"))["cases"]
    assert case["verdict"]["bound"] != "network-bound"  # busy cores alone may be blamed
    assert not [line for line in case["verdict"]["evidence"] if "TCP stream" in line]
