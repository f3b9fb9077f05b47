"""Do the articles' recommendations come out by rule, from predictions of their clusters?"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from broadgauge.advise.recommendations.network_choice import recommend
from broadgauge.advise.recommendations.ratio_interval import ratio_interval
from broadgauge.advise.recommendations.recommendation import (
    PAYS_RATIO,
    Recommendation,
    RecommendationRule,
)
from broadgauge.catalog.articles import articles
from broadgauge.catalog.models import find_model
from broadgauge.predict.articles.clusters import FABRICS, granite_case
from broadgauge.predict.articles.scores import ArticleScores, article_scores
from broadgauge.predict.asking.from_catalog import shape_of
from broadgauge.predict.case import Bottleneck, Fabric, TrainingCase
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.prediction import Interval, Prediction
from broadgauge.predict.predictor import predict, predict_table


@pytest.fixture(scope="module")
def scores() -> ArticleScores:
    return article_scores()


def of_series(scores: ArticleScores, *series: str) -> list[Prediction]:
    return [r.prediction for r in scores.rows if r.prediction and r.row.series in series]


def of_rule(found: Sequence[Recommendation], *rules: RecommendationRule) -> list[Recommendation]:
    return [each for each in found if each.rule in rules]


def step_times(cases: Sequence[TrainingCase]) -> Times:
    return predict_table(cases).evaluation.step_s


def test_l40s_vnic_suffices(scores: ArticleScores) -> None:
    """redhat-network-2025: vNIC on L40S, 2, 4 and 8 nodes; pod does not."""
    found = recommend(of_series(scores, "l40s-cluster"))
    assert [each.about for each in of_rule(found, RecommendationRule.SUFFICES)] == [
        "vnic",
        "vnic",
        "vnic",
    ]
    assert all(each.is_worth_it for each in of_rule(found, RecommendationRule.PAYS))


def test_h100_sriov_pays_and_rdma_brings_little(scores: ArticleScores) -> None:
    """redhat-network-2025: SR-IOV pays on H100, RDMA little for this model; pod is slower than one
    node alone."""
    found = recommend(of_series(scores, "h100-cluster"))
    (suffices,) = of_rule(found, RecommendationRule.SUFFICES)
    assert suffices.about == "sriov"
    steps = {
        each.about: each
        for each in of_rule(found, RecommendationRule.PAYS, RecommendationRule.LITTLE)
    }
    assert steps["sriov"].gain_ratio > 0.5
    assert not steps["sriov-rdma"].is_worth_it
    assert abs(steps["sriov-rdma"].gain_ratio) < 0.02
    slower = of_rule(found, RecommendationRule.SLOWER)
    assert "pod" in {each.about for each in slower}
    assert "slower than 1" in slower[0].words


def test_more_nics_bring_two_h100_nodes_nothing() -> None:
    """redhat-network-2025: 2, 4 or 8 interfaces instead of 1 changed nothing."""
    nics = [
        Fabric(name=f"sriov*{number}", transport="sriov-tcp", node_gbps=400 * number)
        for number in (1, 2, 4, 8)
    ]
    cases = [granite_case(articles(), "h100-cluster", 2, nic) for nic in nics]
    found = of_rule(recommend(predict(cases), step_times), RecommendationRule.NICS)
    assert len(found) == 3
    for each in found:
        assert not each.is_worth_it
        assert abs(each.gain_ratio) < 0.02
        assert any("tokens a GPU and step" in line for line in each.arithmetic)
        assert any("parameters" in line for line in each.arithmetic)


def lora_on_a40(fabric: Fabric, batch: int) -> TrainingCase:
    """redhat-gpudirect-2025; tokens a sequence are not published, 256 assumed."""
    return TrainingCase(
        model=shape_of(find_model("llama3-8b")),
        gpu="a40",
        nodes=2,
        gpus_per_node=2,
        fabric=fabric,
        strategy="fsdp",
        data_parallel=4,
        seq_len=256,
        global_batch=4 * batch,
        micro_batch=batch,
        lora=True,
        recompute="full",
        framework="hf-trainer",
    )


ROCE = Fabric(name="roce", transport="roce", node_gbps=200)


def test_lora_on_a40_roce_pays_over_pod() -> None:
    """Threefold there; a factor of two is what a pod network's prior lets one say."""
    cases = [lora_on_a40(FABRICS["pod"], 32), lora_on_a40(ROCE, 32)]
    (pays,) = of_rule(recommend(predict(cases), step_times), RecommendationRule.PAYS)
    assert pays.about == "roce"
    assert pays.gain_ratio > 1.0
    assert any("steps/s" in line for line in pays.arithmetic)


def test_a_flat_batch_sweep_means_kernels() -> None:
    """redhat-gpudirect-2025: 32, 64, 96 and 112 sequences a GPU take the same time."""
    found = recommend(predict([lora_on_a40(ROCE, batch) for batch in (32, 64, 96, 112)]))
    (batch,) = of_rule(found, RecommendationRule.BATCH)
    assert not batch.is_worth_it
    assert "compute-bound" in batch.words
    assert "kernels" in batch.words
    assert " / " in batch.arithmetic[0]


def test_gpt2_large_needs_nvlink_and_the_small_one_does_not(scores: ArticleScores) -> None:
    """net1-2025: 62.96 and 62.55 s for 85M, 266.8 and 406.1 s for 708M."""
    found = recommend(of_series(scores, "baskerville-85m", "baskerville-708m"))
    places = of_rule(found, RecommendationRule.PLACE)
    worth = {each.words.split(" ")[0].rstrip(":"): each.is_worth_it for each in places}
    assert worth == {"gpt2-85m": False, "gpt2-large-708m": True}


def planted(step_s: float, waits_s: float, **changes: object) -> Prediction:
    """A prediction with these figures."""
    base = lora_on_a40(ROCE, 32)
    (prediction,) = predict([replace(base, **changes)])  # type: ignore[arg-type]
    parts = replace(prediction.parts, exposed_network_s=waits_s)
    interval = Interval(value=step_s, low=step_s / 1.1, high=step_s * 1.1)
    tokens_per_s = prediction.case.global_batch * prediction.case.seq_len / step_s
    return replace(
        prediction,
        step_time_s=interval,
        parts=parts,
        overlapped_communication_s=0.0,
        tokens_per_s=tokens_per_s,
        bound=Bottleneck.NETWORK if waits_s else Bottleneck.COMPUTE,
    )


POD, TCP = Fabric(name="pod", transport="overlay"), Fabric(name="tcp", transport="tcp")


@pytest.mark.parametrize(
    ("pod_s", "waits_s", "suffices"),
    [(1.05, 0.3, "pod"), (1.5, 0.3, "pod"), (1.5, 0.5, "roce"), (9.0, 8.0, "roce")],
)
def test_what_suffices_is_the_lowest_rung(pod_s: float, waits_s: float, suffices: str) -> None:
    """Within a tenth of the best, or a quarter of a step waiting at most."""
    found = recommend([planted(1.0, 0.0), planted(pod_s, waits_s, fabric=POD)])
    (best,) = of_rule(found, RecommendationRule.SUFFICES)
    assert best.about == suffices
    (step,) = of_rule(found, RecommendationRule.PAYS, RecommendationRule.LITTLE)
    assert step.is_worth_it == (pod_s > 1 + PAYS_RATIO)
    assert step.gain_ratio == pytest.approx(pod_s - 1)
    assert f"= {pod_s:.3g}" in step.arithmetic[0]


def test_a_higher_rung_that_is_slower_is_called_slower() -> None:
    """Fast sockets are below a hypervisor's NIC on the ladder of effort, and may carry more."""
    vnic = Fabric(name="vnic", transport="virtio")
    found = recommend([planted(1.0, 0.5, fabric=TCP), planted(3.0, 2.5, fabric=vnic)])
    (step,) = of_rule(found, RecommendationRule.PAYS, RecommendationRule.LITTLE)
    assert not step.is_worth_it
    assert "vnic is slower than tcp" in step.words
    assert "3 times as long" in step.words


@pytest.mark.parametrize(("pod_s", "place"), [(1.05, "as good as any"), (2.0, "the best")])
def test_only_the_fastest_is_called_the_best(pod_s: float, place: str) -> None:
    found = recommend([planted(1.0, 0.5), planted(pod_s, 0.9 * pod_s, fabric=POD)])
    (best,) = of_rule(found, RecommendationRule.SUFFICES)
    assert f"{best.about} is {place} of these, and too slow" in best.words
    assert not best.is_worth_it


def test_a_ratio_that_could_decide_otherwise_is_a_caution() -> None:
    near = recommend([planted(1.0, 0.0), planted(1.15, 0.2, fabric=POD)])
    far = recommend([planted(1.0, 0.0), planted(2.0, 0.9, fabric=POD)])
    assert [each.cautions for each in of_rule(near, RecommendationRule.PAYS)] != [()]
    assert [each.cautions for each in of_rule(far, RecommendationRule.PAYS)] == [()]


def test_kernels_cancel_in_the_ratio_of_two_networks() -> None:
    """One NIC or eight: the steps' intervals overlap, and yet it is sure that eight pay."""
    one = planted(1.4, 0.5, fabric=Fabric(name="one", transport="roce", node_gbps=400))
    eight = planted(1.0, 0.05, fabric=Fabric(name="eight", transport="roce", node_gbps=3200))
    wide = [
        replace(
            each,
            step_time_s=replace(
                each.step_time_s,
                low=each.step_time_s.value / 1.3,
                high=each.step_time_s.value * 1.3,
            ),
        )
        for each in (one, eight)
    ]
    assert wide[0].step_time_s.low < wide[1].step_time_s.high
    found = ratio_interval(*wide)
    assert 1.1 < found.low < found.value < found.high < 1.7
    assert found.value == pytest.approx(1.4)
    (step,) = of_rule(recommend(wide), RecommendationRule.NICS)
    assert step.cautions == ()
    (step,) = of_rule(recommend(wide, pays_ratio=0.35), RecommendationRule.NICS)
    assert "measure before buying" in step.cautions[0]
    measured = [
        replace(
            each,
            case=replace(
                each.case, fabric=replace(each.case.fabric, measured_node_gbyte_per_s=9.0)
            ),
        )
        for each in wide
    ]
    narrower = ratio_interval(*measured)
    assert found.low < narrower.low < narrower.high < found.high


@pytest.mark.parametrize(("pays_ratio", "pays"), [(0.1, True), (0.3, False)])
def test_what_pays_is_the_users_to_say(pays_ratio: float, pays: bool) -> None:
    predictions = [planted(1.0, 0.0), planted(1.2, 0.4, fabric=POD)]
    found = recommend(predictions, step_times, pays_ratio=pays_ratio)
    (step,) = of_rule(found, RecommendationRule.PAYS, RecommendationRule.LITTLE)
    assert step.is_worth_it == pays
    assert any(f"more than {pays_ratio:.0%}".replace("%", " %") in x for x in step.arithmetic)


def test_one_network_and_one_size_give_no_advice() -> None:
    assert recommend([planted(1.0, 0.0)]) == ()


def test_only_the_same_batch_is_compared() -> None:
    """A step of four times the batch takes four times as long over any network."""
    many = 128.0 * 4
    found = recommend(
        [
            planted(1.0, 0.1),
            planted(1.4, 0.5, fabric=POD),
            planted(4.0, 0.4, global_batch=many),
            planted(5.6, 2.0, fabric=POD, global_batch=many),
        ]
    )
    steps = of_rule(found, RecommendationRule.PAYS, RecommendationRule.LITTLE)
    assert [each.about for each in steps] == ["roce", "roce"]
    assert [each.gain_ratio for each in steps] == pytest.approx([0.4, 0.4])
    assert ["global batch 128" in each.words for each in steps] == [True, False]
    assert ["global batch 512" in each.words for each in steps] == [False, True]


def test_sizes_are_compared_by_their_passes() -> None:
    """Where passes a step were listed, one node's of 2 is no base for two nodes' of 1."""

    def at(nodes: int, passes: float, step_s: float) -> Prediction:
        batch = 64.0 * nodes * passes
        return planted(
            step_s, 0.1, nodes=nodes, data_parallel=2 * nodes, global_batch=batch,
            fabric=ROCE if nodes > 1 else Fabric(),
        )  # fmt: skip

    # Tokens/s of one node: 64 a second; of two: 1.9 times as many, with either number of passes.
    found = [at(1, 1, 1.0), at(2, 1, 2 / 1.9), at(1, 2, 1.9), at(2, 2, 4 / 1.9)]
    assert of_rule(recommend(found), RecommendationRule.SLOWER) == []


def test_two_nodes_with_the_same_network_are_no_choice() -> None:
    assert recommend([planted(1.0, 0.3, name="one"), planted(1.0, 0.3, name="other")]) == ()


def test_the_ladder_goes_by_effort_then_by_rate() -> None:
    def steps() -> Iterator[Prediction]:
        for step_s, fabric in ((4.0, POD), (2.0, TCP), (1.0, ROCE)):
            yield planted(step_s, step_s / 2, fabric=fabric)

    found = of_rule(recommend(list(steps())[::-1]), RecommendationRule.PAYS)
    assert [(each.about, round(each.gain_ratio, 6)) for each in found] == [
        ("tcp", 1.0),
        ("roce", 1.0),
    ]
