"""Proves what is read of `sky`, and the ledger: which clusters were paid for, and how much."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.manifests.skypilot.experiments import cases_of, experiment_of
from tests.platforms.hosts.in_process import two_hosts

from broadgauge.manifests.skypilot.clusters import ClusterKey
from broadgauge.platforms.hosts.interfaces import interfaces_of
from broadgauge.platforms.skypilot.ledger import LEDGER_FILE, HeldCluster, Ledger
from broadgauge.platforms.skypilot.sky import SkyAnswer, is_there, plain
from broadgauge.specs.errors import LaunchError, RunFolderError


def answer(text: str, code: int = 0) -> SkyAnswer:
    return SkyAnswer(exit_code=code, output=text)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (answer("[]"), False),
        (answer('Refreshing…\n[\n  {"name": "a", "status": "UP"}\n]\nbye'), True),
        (answer('[{"name": "a", "status": "INIT"}]'), True),
        (answer("nothing of JSON"), None),
        (answer("[half"), None),
        (answer("[]", code=1), None),
        (None, None),
    ],
)
def test_what_nobody_knows_is_not_taken_for_gone(
    told: SkyAnswer | None, expected: bool | None
) -> None:
    assert is_there(told) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("\x1b[1m\x1b[36mLaunching\x1b[0m on Nebius\n", "Launching on Nebius"),
        ("⠋ waiting\r⠙ waiting\rup\n", "up"),
        ("\x1b[?25h\n", ""),
        ("done\r\n", "done"),
    ],
)
def test_lines_are_plain(line: str, expected: str) -> None:
    assert plain(line) == expected


clusters = st.lists(
    st.builds(
        HeldCluster,
        name=st.sampled_from(["a", "b", "c"]),
        nodes=st.integers(1, 64),
        network_tier=st.sampled_from(["standard", "best"]),
        began_unix_s=st.floats(0, 1e9),
        most_s=st.floats(60, 1e6),
        usd_per_node_hour=st.one_of(st.none(), st.floats(0, 100)),
        ended_unix_s=st.one_of(st.none(), st.floats(0, 2e9)),
    ),
    max_size=3,
    unique_by=lambda each: each.name,
)


@settings(max_examples=20, deadline=None)
@given(held=clusters, now_s=st.floats(0, 2e9), later_s=st.floats(0, 1e6))
def test_a_ledger_reads_back_and_its_cost_only_grows(
    tmp_path_factory: pytest.TempPathFactory,
    held: list[HeldCluster],
    now_s: float,
    later_s: float,
) -> None:
    folder = tmp_path_factory.mktemp("run")
    ledger = Ledger(folder)
    for each in held:
        ledger.begin(each)
    again = Ledger(folder)
    assert again.open == ledger.open == tuple(each for each in held if each.ended_unix_s is None)
    now_usd, later_usd = again.spent_usd(now_s), again.spent_usd(now_s + later_s)
    if any(each.usd_per_node_hour is None for each in held):
        assert now_usd is later_usd is None
        return
    assert now_usd is not None
    assert later_usd is not None
    most_usd = sum((h.usd_per_node_hour or 0) * h.nodes * h.most_s / 3600 for h in held)
    assert 0 <= now_usd <= later_usd <= most_usd * (1 + 1e-9)


def test_a_ledger_that_can_t_be_read_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / LEDGER_FILE).write_text(json.dumps({"clusters": [{"name": "a"}]}))
    with pytest.raises(RunFolderError, match="may run"):
        Ledger(tmp_path)


def test_a_cluster_is_of_its_nodes_and_tier() -> None:
    held = HeldCluster(
        name="a",
        nodes=2,
        network_tier="best",
        began_unix_s=0,
        most_s=1,
        usd_per_node_hour=None,
    )
    assert held.is_of(ClusterKey(nodes=2, network_tier="best"))
    assert not held.is_of(ClusterKey(nodes=2, network_tier="standard"))
    assert not held.is_of(ClusterKey(nodes=4, network_tier="best"))


def test_a_cloud_s_network_is_the_interface_that_ssh_came_by() -> None:
    from dataclasses import replace

    case = cases_of(experiment_of())[0]
    first = two_hosts()[0]
    wire = first.interfaces[0]
    reached = replace(wire, name="ens3", address="10.0.0.1")
    host = replace(first, interfaces=(wire, reached), reached_at="10.0.0.1")
    assert interfaces_of(case, host) == ("ens3",)
    with pytest.raises(LaunchError, match="no interface of network ethernet"):
        interfaces_of(case, replace(host, reached_at=None))
