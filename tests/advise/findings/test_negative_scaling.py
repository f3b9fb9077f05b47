"""Is it told where more ranks do less, beyond chance, and only there?"""

from tests.advise.findings.cases import a_case, a_run

from broadgauge.advise.findings.negative_scaling import negative_scaling
from broadgauge.analysis.analyse import analyse
from broadgauge.results.model import RunSummary
from broadgauge.specs.networks.network import Network
from broadgauge.specs.records.record import Confidence
from broadgauge.specs.workloads.workload import TrainWorkload

TRAIN = TrainWorkload(kind="train")
POD = Network(name="pod", rate_gbps=25)
FAST = Network(name="fast", rate_gbps=400)


def run_of(one: list[float], two: list[float], *, share: float = 0.8) -> RunSummary:
    """One rank on one node, and two on two over the pods' network."""
    return a_run(
        "samples_per_s",
        (a_case(TRAIN, None, ranks=1), one),
        (a_case(TRAIN, POD, ranks=2), two),
        network_share_ratio=share,
    )


def test_the_published_figures_of_pods() -> None:
    """21.34 samples/s on one node, 3.46 on two: of one launch each."""
    run = run_of([21.34], [3.46])
    (found,) = negative_scaling(run)
    assert found.finding.symptom == (
        "train 2x1 pod does fewer samples in a second than train 1x1 one node: 3.46 instead of 21.3"
    )
    assert found.finding.evidence == (
        "0.162 (one launch) times the samples_per_s of 1x1",
        "80 % of a step is the network",
    )
    assert found.finding.confidence is Confidence.POSSIBLE
    (group,) = (each for each in analyse(run).findings if each.rule == "negative-scaling")
    assert group.cases == ("train 1x1 one node", "train 2x1 pod")


def test_with_an_interval_and_the_networks_share_it_is_likely() -> None:
    (found,) = negative_scaling(run_of([21.3, 21.4, 21.2], [3.4, 3.5, 3.45]))
    assert found.finding.confidence is Confidence.LIKELY
    assert found.finding.cause is not None
    assert "waits longer for the network" in found.finding.cause


def test_where_the_network_takes_little_the_cause_is_open() -> None:
    (found,) = negative_scaling(run_of([21.3, 21.4, 21.2], [3.4, 3.5, 3.45], share=0.1))
    assert found.finding.confidence is Confidence.POSSIBLE


def test_less_by_chance_is_none() -> None:
    assert list(negative_scaling(run_of([20.0, 22.0, 21.0], [19.5, 22.4, 20.5]))) == []
    assert list(negative_scaling(run_of([21.0], [18.0]))) == []


def test_more_than_before_is_none_however_little() -> None:
    assert list(negative_scaling(run_of([21.0, 21.1, 21.0], [22.0, 22.1, 22.0]))) == []


def test_the_best_of_the_smaller_ones_is_compared_with() -> None:
    """Two are faster than one; three are slower than two, and still faster than one."""
    run = a_run(
        "tokens_per_s",
        (a_case(TRAIN, None, ranks=1), [10.0, 10.1, 10.0]),
        (a_case(TRAIN, POD, ranks=2), [19.0, 19.1, 19.0]),
        (a_case(TRAIN, POD, ranks=3), [15.0, 15.1, 15.0]),
    )
    (found,) = negative_scaling(run)
    assert [each.case.world_size for each in found.cases] == [2, 3]


def test_another_network_or_device_is_no_comparison() -> None:
    run = a_run(
        "tokens_per_s",
        (a_case(TRAIN, FAST, ranks=2), [19.0, 19.1, 19.0]),
        (a_case(TRAIN, None, ranks=1, device="cuda"), [90.0, 90.1, 90.0]),
        (a_case(TRAIN, POD, ranks=3), [15.0, 15.1, 15.0]),
    )
    assert list(negative_scaling(run)) == []
