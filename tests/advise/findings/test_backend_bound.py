"""Is Gloo told as the limit where it is, and never where the wire may be?"""

from tests.advise.findings.cases import a_case, a_run

from broadgauge.advise.findings.backend_bound import backend_bound
from broadgauge.analysis.analyse import analyse
from broadgauge.results.model import RunSummary
from broadgauge.specs.networks.network import Network
from broadgauge.specs.records.record import Confidence
from broadgauge.specs.workloads.workload import CollectivesWorkload

COLLECTIVES = CollectivesWorkload(kind="collectives")
EQUAL = [0.86, 0.861, 0.859, 0.86, 0.86]


def run_of(
    *figures: tuple[float | None, list[float]], backend: str = "gloo", device: str = "cuda"
) -> RunSummary:
    """One network each: its rate in Gbit/s, and busbw in GB/s."""
    parts = (
        (
            a_case(
                COLLECTIVES,
                Network(name=f"wire{i}", rate_gbps=rate_gbps),
                backend=backend,
                device=device,
            ),
            values,
        )
        for i, (rate_gbps, values) in enumerate(figures)
    )
    return a_run("busbw_gbyte_per_s", *parts)


def test_the_published_figures_over_25gbe_and_hdr() -> None:
    """0.86 GB/s on both: a quarter of one wire, a thirtieth of the other."""
    run = run_of((25, EQUAL), (200, EQUAL))
    (found,) = backend_bound(run)
    assert found.finding.evidence == (
        "wire0/gloo: 860 MB/s busbw, 28 % of 25 Gbit/s",
        "wire1/gloo: 860 MB/s busbw, 3.4 % of 200 Gbit/s",
    )
    assert found.finding.confidence is Confidence.LIKELY
    assert found.finding.fix == "compare networks with `backend: nccl`"
    (group,) = analyse(run).findings
    assert (group.rule, group.num_trials) == ("backend-bound", 10)
    assert group.cases == tuple(each.case.label for each in found.cases)


def test_one_launch_each_is_only_possible() -> None:
    (found,) = backend_bound(run_of((25, [0.86]), (200, [0.87]), device="cpu"))
    assert found.finding.confidence is Confidence.POSSIBLE


def test_three_wires_are_one_finding() -> None:
    (found,) = backend_bound(run_of((25, EQUAL), (100, EQUAL), (200, EQUAL)))
    assert len(found.cases) == 3


def test_figures_that_follow_the_wire_are_the_wires() -> None:
    faster = [1.3 * value for value in EQUAL]
    assert list(backend_bound(run_of((25, EQUAL), (200, faster)))) == []


def test_a_wire_that_is_half_full_may_be_the_limit() -> None:
    assert list(backend_bound(run_of((10, EQUAL), (200, EQUAL)))) == []


def test_wires_that_hardly_differ_should_give_the_same() -> None:
    assert list(backend_bound(run_of((25, EQUAL), (40, EQUAL)))) == []


def test_a_wire_of_unknown_rate_says_nothing() -> None:
    assert list(backend_bound(run_of((None, EQUAL), (25, EQUAL)))) == []


def test_figures_whose_spread_hides_a_difference_are_not_called_equal() -> None:
    spread = [0.5, 1.4, 0.6, 1.2, 0.6]
    assert list(backend_bound(run_of((25, EQUAL), (200, spread)))) == []


def test_nccl_has_other_limits() -> None:
    assert list(backend_bound(run_of((25, EQUAL), (200, EQUAL), backend="nccl"))) == []
