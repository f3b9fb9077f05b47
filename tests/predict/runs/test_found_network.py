"""Do rates beside a found network keep the order of its own collectives, whatever is stated?"""

from dataclasses import replace

import pytest
from tests.report.sample_run import Options, sample_run

from broadgauge.predict.case import CollectiveCurve
from broadgauge.predict.costs.curves import time_at
from broadgauge.predict.runs.cases import RunCase, pick_case
from broadgauge.predict.runs.found_network import carried_byte_per_s
from broadgauge.predict.runs.network import carried
from broadgauge.specs.networks.network import Network

STATED = Network(name="fabric", found={"interface": "eth0", "nominal_gbps": 10})
SIZES = (1e6, 1e7, 1e8)
OWN_S = (1e-3, 6e-3, 0.05)
"""1e8 bytes between two nodes in 0.05 s: 2e9 byte/s, where 1.25e9 are stated."""
ALLOWED_S = 1.01e-6


@pytest.fixture(scope="module")
def faster_than_stated(tmp_path_factory: pytest.TempPathFactory) -> RunCase:
    options = Options(platform="hosts", networks=(STATED,), has_failure=False)
    run = sample_run(tmp_path_factory.mktemp("found"), options)
    own = CollectiveCurve(
        op="all_reduce", nodes=2, ranks_per_node=1, message_bytes=SIZES, time_s=OWN_S
    )
    return replace(pick_case(run, "network=fabric"), curves=(own,))


def times_s(base: RunCase, network: Network, nodes: int = 2) -> list[float]:
    curves = carried(base, network, nodes, ()).fabric.curves
    (curve,) = (each for each in curves if each.op == "all_reduce")
    return [time_at(curve, size) for size in SIZES]


def at(byte_per_s: float) -> Network:
    """Of so much payload."""
    shaped = Network(name="emulated", rate_gbps=10)
    payload = shaped.payload_rate_gbps
    assert payload is not None
    return Network(name="emulated", rate_gbps=10 * byte_per_s * 8 / 1e9 / payload)


@pytest.mark.parametrize("byte_per_s", [1.25e9, 1.5e9, 2e9, 4e9])
def test_a_rate_above_the_stated_one_is_never_slower_than_the_run(
    faster_than_stated: RunCase, byte_per_s: float
) -> None:
    found = times_s(faster_than_stated, at(byte_per_s * (1 + 1e-12)))
    assert all(time_s <= own_s + ALLOWED_S for time_s, own_s in zip(found, OWN_S, strict=True))


def test_a_slower_rate_is_never_faster(faster_than_stated: RunCase) -> None:
    ascending = (0.5e9, 1e9, 1.25e9, 1.5e9, 2e9, 2.5e9, 4e9)
    largest = [times_s(faster_than_stated, at(rate))[-1] for rate in ascending]
    assert largest == sorted(largest, reverse=True)
    assert largest[0] == pytest.approx(1e8 / 0.5e9, rel=0.001)


def test_more_nodes_have_the_rate_that_was_shown(faster_than_stated: RunCase) -> None:
    """Four nodes send 1.5 times as much."""
    assert carried_byte_per_s(faster_than_stated) == pytest.approx(2e9)
    of_four_s = times_s(faster_than_stated, STATED, nodes=4)[-1]
    assert of_four_s == pytest.approx(1.5 * OWN_S[-1], rel=0.001)
