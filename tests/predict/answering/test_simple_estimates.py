"""The estimates that article net1-2025 makes by hand, to the digits that it prints."""

import pytest

from broadgauge.catalog.articles import articles
from broadgauge.catalog.catalog import shipped_catalog
from broadgauge.cli.main import main
from broadgauge.predict.answering.carried_rate import carried_gbyte_per_s
from broadgauge.predict.answering.simple_estimates import (
    bytes_over_rate,
    differences,
    explain,
    rounded,
)
from broadgauge.predict.asking.combinations import expand
from broadgauge.predict.prediction import Prediction
from broadgauge.predict.predictor import predict

PARAMS_BYTES = 708e6 * 2
NUM_STEPS = 1108
LARGE = {epoch.id: epoch for epoch in articles().epoch2_seconds}
IDEAL_S = rounded(LARGE["e-15-4-1"].seconds / 2, 2)
NOMINAL, MEASURED = articles().estimates_net1


def test_half_of_one_gpus_time_is_as_printed() -> None:
    assert IDEAL_S == 249.19


@pytest.mark.parametrize("path", ["nvlink3", "hdr"])
def test_bytes_over_the_nominal_rate(path: str) -> None:
    printed = getattr(NOMINAL, path)
    estimate = bytes_over_rate(
        compute_s=IDEAL_S,
        num_steps=NUM_STEPS,
        message_bytes=PARAMS_BYTES,
        rate_gbyte_per_s=printed.rate_gbyte_per_s,
        total_places=2,
    )
    assert rounded(estimate.communication_s, 2) == printed.comm_s
    assert rounded(estimate.total_s, 2) == printed.total_s
    assert estimate.compute_s + estimate.communication_s == estimate.total_s


@pytest.mark.parametrize("path", ["nvlink3", "hdr"])
def test_a_measured_all_reduce(path: str) -> None:
    printed = getattr(MEASURED, path)
    times = {each.path: each.seconds for each in articles().all_reduce if each.backend == "nccl"}
    communication_s = NUM_STEPS * times[path]
    assert rounded(communication_s, 2) == printed.comm_s
    assert rounded(IDEAL_S + communication_s, 2) == printed.total_s


def test_without_rounding_on_the_way_the_last_digit_is_another() -> None:
    unrounded = bytes_over_rate(
        compute_s=IDEAL_S, num_steps=NUM_STEPS, message_bytes=PARAMS_BYTES, rate_gbyte_per_s=25
    )
    assert rounded(unrounded.communication_s, 2) == 125.51
    assert NOMINAL.hdr.comm_s == 125.6


def test_the_arithmetic_has_the_figures_in_it() -> None:
    estimate = bytes_over_rate(
        compute_s=IDEAL_S, num_steps=NUM_STEPS, message_bytes=PARAMS_BYTES, rate_gbyte_per_s=25
    )
    assert estimate.arithmetic == (
        "1,108 steps × 2 × 1.416 GB / 25 GB/s = 125.51 s, after 249.19 s of compute"
    )


def test_half_goes_up() -> None:
    assert rounded(0.125, 2) == 0.13
    assert rounded(249.185, 2) == 249.19


def predicted(network: str, **changes: object) -> Prediction:
    asked = {"model": "llama3-8b", "gpu": "h100-sxm", "nodes": 2, "network": network, **changes}
    (case,) = expand({key: [value] for key, value in asked.items()}, shipped_catalog()).cases
    return predict([case])[0]


@pytest.mark.parametrize("network", ["vnic-200g", "roce-400g*8", "vnic-200g=3GB/s", "eth-25g"])
@pytest.mark.parametrize("strategy", ["ddp", "fsdp", "hsdp"])
@pytest.mark.parametrize("lora", [True, False])
def test_differences_add_up_to_the_models_answer(network: str, strategy: str, lora: bool) -> None:
    prediction = predicted(network, strategy=strategy, lora=lora)
    for estimate in explain(prediction).estimates:
        between_s = sum(each.signed_s for each in differences(prediction, estimate))
        assert estimate.total_s + between_s == pytest.approx(prediction.step_time_s.value)


@pytest.mark.parametrize("gpus_per_node", [1, 8])
def test_the_first_reason_is_the_reason(gpus_per_node: int) -> None:
    """Of a slow network, the rate: what runs beside compute makes the model's step no longer."""
    told = explain(predicted("vnic-200g", strategy="fsdp", lora=True, gpus_per_node=gpus_per_node))
    assert told.estimates[-1].total_s < 0.5 * told.model_s
    assert told.reasons[0].startswith("+")
    assert "lets the network carry 1.2 GB/s, latency included, not 25 GB/s" in told.reasons[0]
    others = told.reasons[1:]
    assert others[0].startswith("−")
    assert others[0].endswith("runs beside compute and costs nothing")


def test_of_a_fast_network_the_first_reason_is_the_overlap() -> None:
    told = explain(predicted("roce-400g", strategy="fsdp", lora=True))
    assert told.estimates[-1].total_s > told.model_s
    assert told.reasons[0].startswith("−")
    assert told.reasons[0].endswith("runs beside compute and costs nothing")


@pytest.mark.parametrize("pipeline_parallel", [2, 4])
def test_no_rate_is_told_where_stages_send_at_different_times(pipeline_parallel: int) -> None:
    """Bytes of one stage over the busy time of another may be more than the NICs have."""
    ways = {"tensor_parallel": 8, "pipeline_parallel": pipeline_parallel, "nodes": 4}
    prediction = predicted("roce-400g", model="llama-3.1-70b", **ways)
    told = explain(prediction)
    assert carried_gbyte_per_s(prediction) is None
    assert not any("lets the network carry" in reason for reason in told.reasons)
    (by_hand,) = told.estimates
    between_s = sum(each.signed_s for each in differences(prediction, by_hand))
    assert by_hand.total_s + between_s == pytest.approx(prediction.step_time_s.value)


def test_the_rate_is_told_where_it_was_measured_above_the_nominal_one() -> None:
    faster = predicted("vnic-200g=26GB/s", strategy="fsdp")
    assert carried_gbyte_per_s(faster) == pytest.approx(26, rel=0.02)


def test_of_two_estimates_the_measured_one_is_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = "predict --model llama3-8b --gpu h100-sxm --nodes 2 --strategy fsdp --explain"
    assert main([*words.split(), "--network", "vnic-200g=3GB/s"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "why it differs from bytes over the measured rate: −" in told
    assert "lets the network carry" not in told, "it carries what was measured"


def test_a_network_without_a_stated_rate_has_no_estimate_by_hand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = "predict --model llama3-8b --gpu h100-sxm --nodes 2 --network pod --explain"
    assert main(words.split()) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "no rate of the network is stated" in told
    assert "nothing leaves the node" not in told
