"""Is what was measured told in dollars where a price is known, and never where none is?"""

from dataclasses import replace

import pytest
from tests.report.sample_run import CASES, Options, sample_run

from broadgauge.results.cost import cost_of
from broadgauge.results.model import RunSummary
from broadgauge.results.price import NO_GPU
from broadgauge.results.summary import summarise_run
from broadgauge.specs.cost import Cost
from broadgauge.specs.records.record import GpuFacts, Status


@pytest.fixture(scope="module")
def on_cpus(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    return sample_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def on_gpus(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    """The same as if GPUs had computed."""
    run = sample_run(tmp_path_factory.mktemp("run"), Options(has_gpus=True))
    cases = {case.key: case.model_copy(update={"device": "cuda"}) for case in CASES}
    launches = [
        launch.model_copy(
            update={
                "trials": tuple(
                    trial.model_copy(update={"case_key": cases[trial.case_key].key})
                    for trial in launch.trials
                )
            }
        )
        for launch in run.plan.launches
    ]
    return summarise_run(
        folder=run.folder,
        plan=run.plan.model_copy(
            update={"cases": tuple(cases.values()), "launches": tuple(launches)}
        ),
        records=[
            record.model_copy(update={"case_key": cases[record.case_key].key})
            for record in run.records
        ],
        experiment_yaml=run.experiment_yaml,
        environments=run.environments,
    )


def with_cost(run: RunSummary, cost: Cost) -> RunSummary:
    return replace(run, plan=run.plan.model_copy(update={"cost": cost}))


def with_gpus(run: RunSummary, *names: str) -> RunSummary:
    gpus = tuple(GpuFacts(name=name, memory_bytes=1) for name in names)
    environments = {
        key: each.model_copy(update={"gpus": gpus}) for key, each in run.environments.items()
    }
    return replace(run, environments=environments)


def test_a_known_gpu_has_the_catalogs_price_and_says_whose(on_gpus: RunSummary) -> None:
    cost = cost_of(on_gpus)
    (words,) = cost.words
    assert words == (
        "$3.5 for a GPU (h200-sxm) and hour (nebius-h200, 2025-10-22, the lowest known)"
    )
    for summary in on_gpus.cases:
        found = cost.cases[summary.case.key]
        assert found.price_usd_per_hour == 3.5 * summary.case.world_size
        is_training = "tokens_per_s" in summary.estimates
        assert (found.usd_per_gigatoken is not None) == is_training
        assert found.usd_per_run is not None
        assert found.usd_per_run.value == pytest.approx(7.5 / 3600 * found.price_usd_per_hour)


def test_dollars_are_gpus_times_price_times_hours(on_gpus: RunSummary) -> None:
    cost = cost_of(on_gpus, Cost(usd_per_gpu_hour=2.0, tokens=10**12))
    for summary in on_gpus.cases:
        tokens = summary.estimates.get("tokens_per_s")
        found = cost.cases[summary.case.key]
        if tokens is None:
            assert found.whole is None
            continue
        hours = 1e9 / tokens.value / 3600
        assert found.usd_per_gigatoken is not None
        assert found.whole is not None
        assert found.whole.usd is not None
        expected = 2.0 * summary.case.world_size * hours
        assert found.usd_per_gigatoken.value == pytest.approx(expected, rel=0.01)
        assert found.whole.usd.value == pytest.approx(1000 * found.usd_per_gigatoken.value)
        assert found.whole.time_s.value == pytest.approx(1000 * hours * 3600, rel=0.01)
        assert found.usd_per_gigatoken.launches == tokens.launches


def test_a_slower_network_costs_more_for_the_same_tokens(on_gpus: RunSummary) -> None:
    """The articles' return on investment: the same GPUs wait on a slow network, and are paid."""
    cost = cost_of(on_gpus)
    dollars = {
        summary.case.plain_network_name: cost.cases[summary.case.key].usd_per_gigatoken
        for summary in on_gpus.cases
        if summary.case.nodes == 2 and "tokens_per_s" in summary.estimates
    }
    found = [dollars[network] for network in ("pod-like", "vnic-like", "reference")]
    values = [each.value for each in found if each is not None]
    assert len(values) == 3
    assert values == sorted(values, reverse=True)


def test_flags_come_before_the_experiment_and_that_before_the_catalog(
    on_gpus: RunSummary,
) -> None:
    planned = with_cost(on_gpus, Cost(usd_per_gpu_hour=5.0, tokens=10**9))
    assert cost_of(planned).words == ("$5 for a GPU and hour (as the experiment says)",)
    given = cost_of(planned, Cost(usd_per_node_hour=30.0))
    assert given.words == ("$30 for a node and hour (as given)",)
    wholes = [each.whole for each in given.cases.values() if each.whole is not None]
    assert {whole.tokens for whole in wholes} == {10**9}, "the experiment's tokens stay"
    only_tokens = cost_of(planned, Cost(tokens=10**6))
    assert only_tokens.words == cost_of(planned).words, "and its price"


def test_a_nodes_price_of_the_catalog_is_shared_by_its_gpus(on_gpus: RunSummary) -> None:
    cost = cost_of(with_cost(on_gpus, Cost(node="p5.48xlarge")))
    assert cost.words == ("$6.88 for a GPU of p5.48xlarge and hour (aws-p5.48xlarge, 2026-09-25)",)
    assert cost_of(with_cost(on_gpus, Cost(node="r760xa-a40"))).words == (), "nobody knows one"


@pytest.mark.parametrize(
    "names", [(), ("A GPU that nobody knows",), ("NVIDIA H200", "NVIDIA L40S"), ("NVIDIA A40",)]
)
def test_no_price_is_invented(names: tuple[str, ...], on_gpus: RunSummary) -> None:
    cost = cost_of(with_gpus(on_gpus, *names))
    assert cost.words == ()
    assert cost.total_usd is None
    assert cost.cases == {}


def test_cpus_have_no_gpus_price(on_cpus: RunSummary) -> None:
    assert cost_of(with_gpus(on_cpus, "NVIDIA H200")).cases == {}
    refused = cost_of(on_cpus, Cost(usd_per_gpu_hour=2.0))
    assert (refused.cases, refused.words) == ({}, (NO_GPU,))
    of_nodes = cost_of(on_cpus, Cost(usd_per_node_hour=2.0))
    for summary in on_cpus.cases:
        found = of_nodes.cases[summary.case.key]
        assert found.price_usd_per_hour == 2.0 * summary.case.nodes


def test_days_need_no_price(on_cpus: RunSummary) -> None:
    cost = cost_of(on_cpus, Cost(tokens=10**9))
    wholes = [each.whole for each in cost.cases.values() if each.whole is not None]
    assert len(wholes) == 4
    assert all(whole.usd is None for whole in wholes)
    assert cost.total_usd is None


def test_failed_trials_are_paid_for_and_give_no_figure(on_cpus: RunSummary) -> None:
    given = Cost(usd_per_node_hour=3.0)
    cost = cost_of(on_cpus, given)
    nodes = {summary.case.key: summary.case.nodes for summary in on_cpus.cases}
    hours = [
        nodes[each.case_key] * (each.ended_unix_s - each.started_unix_s) / 3600
        for each in on_cpus.records
    ]
    assert cost.total_usd == pytest.approx(3.0 * sum(hours))
    failed = {each.case_key for each in on_cpus.records if each.status is Status.FAILED}
    (key,) = failed
    found = cost.cases[key].usd_per_run
    assert found is not None
    assert found.trials == 4, "of five, one failed"


def test_dollars_follow_the_price(on_gpus: RunSummary) -> None:
    one, ten = (cost_of(on_gpus, Cost(usd_per_gpu_hour=usd)) for usd in (1.0, 10.0))
    for key, found in one.cases.items():
        for name in ("usd_per_gigatoken", "usd_per_run"):
            low, high = getattr(found, name), getattr(ten.cases[key], name)
            assert (low is None) == (high is None)
            if low is not None:
                assert high.value == pytest.approx(10 * low.value)
                assert high.half_width_ratio == pytest.approx(low.half_width_ratio)
