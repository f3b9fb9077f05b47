"""Laws of kernel and launch times: what must hold whatever the constants are."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broadgauge.catalog.gpus import Gpu, MatrixProducts, find_gpu_named
from broadgauge.catalog.models import find_model
from broadgauge.predict.asking.from_catalog import shape_of
from broadgauge.predict.case import ModelShape, Precision, SplitStrategy, TrainingCase
from broadgauge.predict.costs.compute import HOST_ADAM_S, compute_costs
from broadgauge.predict.costs.pieces import ComputeCosts
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.knowledge import prior_knowledge
from broadgauge.specs.errors import InputError

GPT = ModelShape(
    name="gpt", layers=24, hidden=2048, vocabulary=51200, params=1.3e9, active_params=1.3e9
)
CASE = TrainingCase(
    model=GPT,
    gpu="a100-sxm-80gb",
    seq_len=2048,
    global_batch=8,
    micro_batch=4,
    framework="megatron-lm",
)


def costs(*cases: TrainingCase) -> ComputeCosts:
    return compute_costs(columns_of(cases), prior_knowledge())


def test_every_cost_is_finite_and_not_negative() -> None:
    cases = [
        replace(CASE, precision=precision, gpu=gpu, lora=lora, recompute=recompute)
        for precision in ("fp32", "tf32", "fp16", "bf16", "fp8")
        for gpu in ("v100-sxm-16gb", "a100-sxm-40gb", "h100-sxm", "rtx-4090")
        for lora in (False, True)
        for recompute in ("none", "selective", "full")
    ]
    for field in fields(ComputeCosts):
        values = getattr(costs(*cases), field.name)
        assert values.shape == (len(cases),)
        assert np.all(np.isfinite(values)), field.name
        assert np.all(values >= 0), field.name


def test_a_case_costs_the_same_alone_and_among_others() -> None:
    others = [replace(CASE, micro_batch=float(size)) for size in (1, 2, 8)]
    among = costs(*others, CASE)
    for field in fields(ComputeCosts):
        assert getattr(among, field.name)[3] == getattr(costs(CASE), field.name)[0]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 5), st.integers(1, 16))
def test_more_tokens_never_take_less_time(doublings: int, micro_batch: int) -> None:
    less = replace(CASE, micro_batch=float(micro_batch))
    more = replace(less, micro_batch=float(micro_batch * 2**doublings))
    both = costs(less, more)
    assert both.layer_forward_s[0] <= both.layer_forward_s[1]
    assert both.layer_backward_s[0] <= both.layer_backward_s[1]
    assert both.head_forward_s[0] <= both.head_forward_s[1]


def test_large_products_run_at_the_efficiency_of_the_gpu() -> None:
    """A wide layer is nearly all products: its FLOPs over its time is near peak × efficiency."""
    wide = replace(GPT, hidden=16384, layers=2, params=2 * 12 * 16384.0**2, vocabulary=1)
    case = replace(CASE, model=replace(wide, active_params=wide.params), micro_batch=8)
    found = costs(case)
    layer_s = found.layer_forward_s[0] + found.layer_backward_s[0]
    flops = 6 * 12 * 16384.0**2 * 8 * 2048
    efficiency = prior_knowledge().values["gemm_efficiency.ampere"]
    assert 0.75 * efficiency < flops / layer_s / 312e12 < efficiency


def with_products(name: str, tflops: float) -> Gpu:
    """A board of the catalog, whose large products were found to reach this."""
    gpu = find_gpu_named(name)
    dtype = "fp16" if gpu.peaks.bf16_tflops is None else "bf16"
    products = MatrixProducts(
        precision=dtype, reached_tflops=tflops, runs=1, source="made for this test", date="2026"
    )
    return gpu.model_copy(update={"products": products})


@pytest.mark.parametrize("gpu", ["a100-sxm-80gb", "l4", "mi300x"])
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
@pytest.mark.parametrize("flash", [True, False])
def test_a_board_that_reaches_less_is_slower(gpu: str, precision: Precision, flash: bool) -> None:
    case = replace(CASE, gpu=gpu, precision=precision, flash_attention=flash, micro_batch=64)
    slow, fast = (replace(case, own_gpu=with_products(gpu, tflops)) for tflops in (100, 200))
    both = costs(slow, fast)
    assert both.layer_forward_s[0] > 1.2 * both.layer_forward_s[1]


@pytest.mark.parametrize("gpu", ["rtx-4090", "h100-pcie", "v100-sxm-16gb"])
@pytest.mark.parametrize("flash", [True, False])
def test_products_of_tensor_cores_say_nothing_of_arithmetic_without_them(
    gpu: str, flash: bool
) -> None:
    case = replace(CASE, gpu=gpu, precision="fp32", flash_attention=flash)
    silent = find_gpu_named(gpu).model_copy(update={"products": None})
    both = costs(replace(case, own_gpu=silent), replace(case, own_gpu=with_products(gpu, 50)))
    for field in fields(ComputeCosts):
        values = getattr(both, field.name)
        assert values[0] == values[1], field.name


def test_full_recomputation_adds_one_forward_and_none_of_the_head() -> None:
    kept, again = (
        costs(CASE, replace(CASE, recompute="full")),
        costs(replace(CASE, recompute="full")),
    )
    assert kept.layer_recompute_s[0] == 0
    assert again.layer_recompute_s[0] == again.layer_forward_s[0]
    assert kept.head_backward_s[1] == kept.head_backward_s[0]


def test_selective_recomputation_is_free_with_flash_attention() -> None:
    plain = replace(CASE, recompute="selective", flash_attention=False)
    both = costs(replace(plain, flash_attention=True), plain)
    assert both.layer_recompute_s[0] == 0
    assert 0 < both.layer_recompute_s[1] < 0.5 * both.layer_forward_s[1]


def test_frozen_weights_have_no_gradients_and_no_optimizer() -> None:
    both = costs(CASE, replace(CASE, lora=True))
    assert both.layer_backward_s[1] < both.layer_backward_s[0]
    assert both.optimizer_s[1] < 0.05 * both.optimizer_s[0]


@pytest.mark.parametrize(
    "split",
    [{"data_parallel": 8}, {"context_parallel": 8}, {"data_parallel": 4, "tensor_parallel": 2}],
)
@pytest.mark.parametrize("strategy", ["fsdp", "hsdp"])
def test_all_ranks_of_a_node_share_the_update(
    strategy: SplitStrategy, split: dict[str, int]
) -> None:
    alone = costs(replace(CASE, strategy="ddp"))
    shared = costs(replace(CASE, strategy=strategy, gpus_per_node=8, **split))  # type: ignore[arg-type]
    assert shared.optimizer_s[0] == pytest.approx(alone.optimizer_s[0] / 8)


@pytest.mark.parametrize("zero_stage", [None, 1])
def test_a_rank_updates_its_own_experts(zero_stage: int | None) -> None:
    """1/8 of them, and all of the rest; where states are sharded it is a share of all anyway."""
    model = shape_of(find_model("mixtral-8x7b"))
    whole = replace(
        CASE, model=model, gpus_per_node=8, data_parallel=8, strategy="megatron",
        zero_stage=zero_stage,
    )  # fmt: skip
    both = costs(whole, replace(whole, expert_parallel=8)).optimizer_s
    shapes = columns_of([whole]).shapes
    spread = 1 - 7 / 8 * shapes.expert_params[0] * shapes.layers[0] / shapes.params[0]
    assert both[1] / both[0] == pytest.approx(spread if zero_stage is None else 1.0)


def test_tensor_parallel_ranks_share_the_products() -> None:
    both = costs(CASE, replace(CASE, tensor_parallel=4, gpus_per_node=4))
    assert 0.25 < both.layer_forward_s[1] / both.layer_forward_s[0] < 0.5


def test_a_causal_flash_kernel_executes_half_of_what_an_encoder_does() -> None:
    long = replace(CASE, seq_len=65536, micro_batch=1)
    encoder = replace(long, model=replace(GPT, architecture="encoder"))
    both = costs(long, encoder)
    difference = both.layer_forward_s[1] - both.layer_forward_s[0]
    assert 0.3 < difference / both.layer_forward_s[1] < 0.5


def test_compiled_code_launches_faster() -> None:
    both = costs(CASE, replace(CASE, compiled=True))
    assert both.layer_forward_launch_s[1] < both.layer_forward_launch_s[0]


def test_an_unknown_gpu_is_named_with_what_was_meant() -> None:
    with pytest.raises(InputError, match="h100-sxn"):
        costs(replace(CASE, gpu="h100-sxn"))


def test_the_ranks_of_a_node_share_its_cpus() -> None:
    """Shards of 8 ranks are an eighth each: one host needs as long for all as for one whole."""
    whole = replace(CASE, strategy="fsdp", cpu_offload=True)
    shared = replace(whole, gpus_per_node=8, data_parallel=8, global_batch=32)
    spread = replace(shared, nodes=8, gpus_per_node=1)
    one, eight, apart = costs(whole, shared, spread).optimizer_s
    assert one > eight > apart
    assert eight > HOST_ADAM_S * GPT.params
