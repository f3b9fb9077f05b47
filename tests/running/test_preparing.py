"""Is what an experiment needs looked for before anything runs?"""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.engine.making import a_machine
from tests.platforms.hosts.test_environment import FIRST

from broadgauge.agent.facts import HostFacts
from broadgauge.running.experiments import load
from broadgauge.running.preparing import prepare
from broadgauge.specs.cost import Cost
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.hosts import Host


@pytest.mark.parametrize(
    ("node", "said"),
    [("p5.49xlarge", "no node `p5.49xlarge`"), ("r760xa-a40", "no price of r760xa-a40 is known")],
)
def test_a_node_without_a_price_is_refused_before_anything_runs(node: str, said: str) -> None:
    loaded = load("quickstart", overrides=(f"cost.node={node}",))
    with pytest.raises(InputError, match=said) as refused:
        prepare(loaded, machine=a_machine())
    assert refused.value.hint


def test_the_plan_keeps_what_the_experiment_says_of_cost() -> None:
    loaded = load("quickstart", overrides=("cost={usd_per_node_hour: 2, tokens: 300B}",))
    cost = prepare(loaded, machine=a_machine()).plan.cost
    assert cost == Cost(usd_per_node_hour=2.0, tokens=300_000_000_000)
    assert prepare(load("quickstart", overrides=()), machine=a_machine()).plan.cost is None


def refused_for_torch(monkeypatch: pytest.MonkeyPatch, *has_torch: bool) -> InputError:
    """Hosts node0, node1, … of which the second has a Python of its own."""

    def read_hosts(hosts: Sequence[Host]) -> tuple[HostFacts, ...]:
        told = zip(hosts, has_torch, strict=True)
        return tuple(
            replace(FIRST, hostname=host.ssh, torch="2" if has else None) for host, has in told
        )

    monkeypatch.setattr("broadgauge.platforms.hosts.checking.read_hosts", read_hosts)
    hosts = [f"{{ssh: node{number}}}" for number in range(len(has_torch))]
    hosts[1] = "{ssh: node1, python: /opt/venv/bin/python}"
    overrides = (
        "platform=hosts",
        f"hosts=[{', '.join(hosts)}]",
        "networks=[{name: n, found: {interface: eth0}}]",
    )
    with pytest.raises(InputError) as refused:
        prepare(load("quickstart", overrides=overrides), machine=a_machine())
    assert "hosts[].python" in (refused.value.hint or "")
    return refused.value


def test_a_host_without_torch_is_named_with_its_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has torch, and needs none."""
    assert refused_for_torch(monkeypatch, True, False).message == (
        "measuring needs torch, and the Python of 1 host has none: "
        "node1: /opt/venv/bin/python (3.11.7), hosts[1].python"
    )
    assert "2 hosts has none: node0: python3 (3.11.7), hosts[0].python; node1: " in (
        refused_for_torch(monkeypatch, False, False).message
    )


def test_of_many_hosts_without_torch_the_first_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refused_for_torch(monkeypatch, *[False] * 12).message
    assert "of 12 hosts has none" in message
    assert "node7" in message
    assert "node8" not in message
    assert message.endswith("; 4 more")


def test_this_machine_without_torch_is_here() -> None:
    with pytest.raises(InputError, match="not installed here for Python 3"):
        prepare(load("quickstart", overrides=()), machine=replace(a_machine(), torch=None))
