"""What would another network give a run on one that nobody could set: never a contradiction?"""

from itertools import pairwise

import pytest
from tests.report.sample_run import Options, sample_run
from tests.report.test_found_networks import ON_HOSTS

from broadgauge.predict.runs.cases import pick_case, run_paths
from broadgauge.predict.system.curves import host_path
from broadgauge.predict.whatif.changes import Change, WhatIfAnswer
from broadgauge.predict.whatif.whatif import what_if
from broadgauge.results.model import RunSummary
from broadgauge.specs.networks.network import Network

RATES_GBPS = (0.1, 1.0, 10.0, 100.0, 200.0, 400.0)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    options = Options(
        platform="hosts", networks=ON_HOSTS, unmeasured=ON_HOSTS[2], has_failure=False
    )
    return sample_run(tmp_path_factory.mktemp("found"), options)


def ask(run: RunSummary, network: str, *changes: Change) -> tuple[WhatIfAnswer, ...]:
    return what_if(run, pick_case(run, f"network={network}"), changes).answers


def at(rate_gbps: float) -> Change:
    network = Network(name="emulated", rate_gbps=rate_gbps)
    return Change(label=f"{rate_gbps} Gbit/s", network=network)


@pytest.mark.parametrize("name", ["fabric", "frontend"])
def test_a_slower_rate_is_never_faster(run: RunSummary, name: str) -> None:
    """`fabric` has a nominal rate of 200 Gbit/s a NIC; `frontend` what its streams carried. Where
    nothing waits for the wire, how the run's own factor fades makes less than a thousandth."""
    own, *others = ask(run, name, Change(), *map(at, RATES_GBPS))
    steps_s = [answer.step_s.value for answer in others]
    assert all(faster <= 1.001 * slower for slower, faster in pairwise(steps_s))
    assert steps_s[0] > 1.5 * own.step_s.value
    assert {answer.basis for answer in others} == {"found"}


def test_its_own_nominal_rate_gives_its_own_step(run: RunSummary) -> None:
    own, same, faster = ask(run, "fabric", Change(), at(400.0 / 0.97), at(10_000.0))
    assert same.step_s.value == pytest.approx(own.step_s.value, rel=0.01)
    assert faster.step_s.low <= own.step_s.value


def test_a_found_network_is_not_taken_for_the_hosts_own_speed(run: RunSummary) -> None:
    paths = run_paths(run)
    assert {path.path for path in paths} == {"found"}
    assert host_path(paths, 2, 1) is None
