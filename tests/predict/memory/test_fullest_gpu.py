"""Is what a GPU holds what others measured, and does it shrink where it must?"""

import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broadgauge.catalog.models import find_model
from broadgauge.predict.asking.from_catalog import shape_of
from broadgauge.predict.case import ModelShape, TrainingCase
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.element_sizes import gradient_bytes
from broadgauge.predict.memory.columns import memory_columns
from broadgauge.predict.memory.fullest_gpu import memory_table, memory_use
from broadgauge.predict.prediction import MemoryUse
from broadgauge.predict.tables.table import read_table

MIB, GIB = 2.0**20, 2.0**30


def shape(name: str, params: float, **more: object) -> ModelShape:
    return ModelShape(name=name, params=params, active_params=params, **more)  # type: ignore[arg-type]


GPT2_85M = shape("gpt2-85m", 85e6, layers=12, hidden=768, heads=12, vocabulary=65)
GPT2_708M = shape("gpt2-708m", 708e6, layers=36, hidden=1280, heads=20, vocabulary=65)
LLAMA = {"gated_mlp": True, "layers": 32, "hidden": 4096, "heads": 32}
LLAMA3_8B = shape("8b", 8.03e9, kv_heads=8, ffn_hidden=14336, vocabulary=128256, **LLAMA)
LLAMA2_7B = shape("7b", 6.74e9, kv_heads=32, ffn_hidden=11008, vocabulary=32000, **LLAMA)
QWEN_7B = shape("qwen", 7.72e9, kv_heads=32, ffn_hidden=11008, vocabulary=151936, **LLAMA)


def in_use_bytes(use: MemoryUse) -> float:
    """Without the margin: what torch counts as allocated."""
    return use.total_bytes - use.margin_bytes


def gpt2(model: ModelShape, seq_len: int) -> TrainingCase:
    return TrainingCase(
        model=model,
        gpu="a100-sxm-80gb",
        gpus_per_node=2,
        data_parallel=2,
        seq_len=seq_len,
        global_batch=32,
        micro_batch=16,
        flash_attention=False,
    )


@pytest.mark.parametrize(("model", "peak_mib"), [(GPT2_85M, 3693.55), (GPT2_708M, 24258.38)])
def test_the_articles_peaks_name_its_sequence_length(model: ModelShape, peak_mib: float) -> None:
    """e-15-2 and e-15-5-3 of the articles' tables, of two GPUs with DDP.

    The article gives no sequence length. With these bytes a layer 256 alone is near either peak, of
    all powers of two: within 3 %, the next ones 20 % or more away. (128 with a GELU of separate
    kernels would be as near.) 1,024 is out of the question: four times the peak, and 99 % MFU.
    """
    peak_bytes = peak_mib * MIB
    error = {s: in_use_bytes(memory_use(gpt2(model, s))) / peak_bytes - 1 for s in (128, 256, 512)}
    assert abs(error[256]) < 0.03
    assert error[128] < -0.2
    assert error[512] > 0.5


def fsdp(model: ModelShape, gpus: int, **more: object) -> TrainingCase:
    fields: dict[str, object] = {
        "strategy": "fsdp",
        "gpus_per_node": gpus,
        "data_parallel": gpus,
        "recompute": "full",
        "gpu": "h100-sxm-80gb",
    }
    case = {"model": model, "global_batch": 64.0, **fields, **more}
    return TrainingCase(**case)  # type: ignore[arg-type]


PUBLISHED_RESERVED: list[tuple[TrainingCase, float]] = [
    # pytorch/torchtitan benchmarks/llama3_h100_202412_torchtitan.md, tables 2 (full recomputation)
    (fsdp(LLAMA3_8B, 8, seq_len=32768, micro_batch=1), 83.9),
    (fsdp(LLAMA3_8B, 8, data_parallel=4, context_parallel=2, seq_len=65536, micro_batch=1), 84.2),
    # AnswerDotAI/fsdp_qlora benchmarks_03_2024.md, Llama-2 7B on two RTX 3090, 2,048 tokens
    (fsdp(LLAMA2_7B, 2, seq_len=2048, micro_batch=4, lora=True), 16.14),
    (fsdp(LLAMA2_7B, 2, seq_len=2048, micro_batch=6, lora=True), 21.35),
    (fsdp(LLAMA2_7B, 2, seq_len=2048, micro_batch=4, lora=True, quantized_base=True), 11.22),
    (fsdp(LLAMA2_7B, 2, seq_len=2048, micro_batch=10, lora=True, quantized_base=True), 20.97),
    (fsdp(LLAMA2_7B, 2, seq_len=2048, micro_batch=4, lora=True, strategy="ddp"), 22.04),
]


@pytest.mark.parametrize(("case", "peak_gib"), PUBLISHED_RESERVED)
def test_published_reserved_peaks_lie_within_a_tenth(case: TrainingCase, peak_gib: float) -> None:
    """What the allocator holds of the driver: compared with the margin."""
    assert memory_use(case).total_bytes == pytest.approx(peak_gib * GIB, rel=0.11)


def test_flash_attention_saves_what_it_was_measured_to_save() -> None:
    """modelscope/ms-swift Benchmark.md: Qwen-7B, LoRA, 2,048 tokens, 57.67 against 37.70 GiB."""
    flash = fsdp(QWEN_7B, 1, seq_len=2048, micro_batch=1, lora=True, recompute="none")
    plain = replace(flash, flash_attention=False)
    saved_bytes = in_use_bytes(memory_use(plain)) - in_use_bytes(memory_use(flash))
    assert saved_bytes == pytest.approx((57.67 - 37.70) * GIB, rel=0.02)


@pytest.mark.parametrize(
    ("zero_stage", "published_gbyte"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.88)]
)
def test_the_states_are_those_of_the_zero_paper(zero_stage: int, published_gbyte: float) -> None:
    """Rajbhandari et al. 2020, figure 1: 7.5B parameters, fp16 and Adam, 64 ranks."""
    model = shape("7.5b", 7.5e9, layers=32, hidden=4096, heads=32, vocabulary=50257)
    case = TrainingCase(
        model=model,
        gpu="v100-sxm-32gb",
        nodes=8,
        gpus_per_node=8,
        data_parallel=64,
        zero_stage=zero_stage,
        framework="deepspeed",
        precision="fp16",
        seq_len=1024,
        global_batch=64,
        micro_batch=1,
    )
    use = memory_use(case)
    states_bytes = use.parameters_bytes + use.gradients_bytes + use.optimizer_bytes
    assert states_bytes == pytest.approx(published_gbyte * 1e9, rel=0.01)


MIXTRAL = shape_of(find_model("mixtral-8x7b"))


@pytest.mark.parametrize("expert_parallel", [1, 2, 8, 16])
def test_sharded_experts_are_held_once_whoever_has_them(expert_parallel: int) -> None:
    """8 bytes of Adam's moments a parameter over all ranks: experts are spread or sharded."""
    case = fsdp(MIXTRAL, 16, seq_len=4096, micro_batch=1)
    use = memory_use(replace(case, expert_parallel=expert_parallel))
    assert 16 * use.optimizer_bytes == pytest.approx(8 * MIXTRAL.params, rel=1e-9)


def test_offloaded_stages_keep_their_weights() -> None:
    """ZeRO's stage 1 is all that a pipeline knows: only the optimizer's states can be away."""
    model = shape_of(find_model("llama2-7b"))
    whole = fsdp(model, 8, strategy="megatron", cpu_offload=True, seq_len=1024, micro_batch=1)
    piped = memory_use(replace(whole, pipeline_parallel=4, data_parallel=2))
    assert memory_use(whole).parameters_bytes == 0
    assert piped.parameters_bytes > 0
    assert piped.optimizer_bytes == 0


@pytest.mark.parametrize("data_parallel", [1, 2])
def test_offloaded_tensor_ranks_keep_their_weights(data_parallel: int) -> None:
    """Also where there is one data-parallel rank: Megatron moves its optimizer alone."""
    model = shape_of(find_model("llama3-70b"))
    case = fsdp(
        model, 8 * data_parallel, strategy="megatron", cpu_offload=True, seq_len=1024, micro_batch=1
    )
    split = replace(case, tensor_parallel=8, data_parallel=data_parallel)
    use = memory_use(split)
    assert use.parameters_bytes == pytest.approx(2 * model.params / 8, rel=0.1)
    assert use.gradients_bytes > 0
    assert use.optimizer_bytes == 0


def test_tensor_ranks_share_frozen_weights() -> None:
    model = shape_of(find_model("llama2-7b"))
    whole = fsdp(model, 8, strategy="megatron", lora=True, seq_len=1024, micro_batch=1)
    split = replace(whole, tensor_parallel=8, data_parallel=1)
    ratio = memory_use(split).parameters_bytes / memory_use(whole).parameters_bytes
    assert ratio == pytest.approx(1 / 8)


@pytest.mark.parametrize(
    ("precision", "zero_stage", "published_bytes"),
    [("bf16", 0, 18.0), ("bf16", 1, 6 + 12 / 8), ("fp32", 0, 16.0), ("fp32", 1, 8 + 8 / 8)],
)
def test_megatrons_bytes_a_parameter(
    precision: str, zero_stage: int, published_bytes: float
) -> None:
    """Megatron Core developer guide, distributed optimizer, d = 8."""
    model = shape("m", 1e9, layers=24, hidden=2048, heads=16, vocabulary=50257)
    case = fsdp(
        model, 8, strategy="megatron", zero_stage=zero_stage, precision=precision,
        seq_len=1024, micro_batch=1,
    )  # fmt: skip
    use = memory_use(case)
    states_bytes = use.parameters_bytes + use.gradients_bytes + use.optimizer_bytes
    assert states_bytes / 1e9 == pytest.approx(published_bytes)


def test_a_layer_is_equation_2_of_korthikanti() -> None:
    """sbh (10 + 24/t + 5as/(ht)) bytes, of one layer more."""
    seq_len, micro_batch, hidden, heads, tensor = 2048, 4, 6144, 64, 8
    model = shape("22b", 22e9, layers=48, hidden=hidden, heads=heads, vocabulary=51200)
    model = replace(model, ffn_hidden=4 * hidden, gated_mlp=False)
    case = TrainingCase(
        model=model,
        gpu="a100-sxm-80gb",
        gpus_per_node=8,
        strategy="megatron",
        tensor_parallel=tensor,
        seq_len=seq_len,
        global_batch=4,
        micro_batch=micro_batch,
        flash_attention=False,
        framework="megatron",
    )
    longer = replace(case, model=replace(model, layers=49))
    more = memory_use(longer).activations_bytes - memory_use(case).activations_bytes
    per_token = 10 + 24 / tensor + 5 * heads * seq_len / (hidden * tensor)
    assert more == pytest.approx(seq_len * micro_batch * hidden * per_token)


cases = st.builds(
    fsdp,
    st.sampled_from([LLAMA3_8B, LLAMA2_7B, GPT2_708M]),
    st.sampled_from([1, 2, 8]),
    strategy=st.sampled_from(["ddp", "fsdp", "hsdp", "megatron"]),
    recompute=st.sampled_from(["none", "selective", "full", "unknown"]),
    seq_len=st.sampled_from([128, 4096]),
    micro_batch=st.sampled_from([1.0, 0.5, 8.0]),
    flash_attention=st.booleans(),
    lora=st.booleans(),
    cpu_offload=st.booleans(),
    zero_stage=st.sampled_from([None, 0, 1, 2, 3]),
    precision=st.sampled_from(["fp32", "bf16", "fp16", "fp8"]),
)


@settings(max_examples=40, deadline=None)
@given(cases)
def test_what_shrinks_memory_never_grows_it(case: TrainingCase) -> None:
    use = memory_use(case)
    for smaller in (
        replace(case, recompute="full"),
        replace(case, flash_attention=True),
        replace(case, micro_batch=case.micro_batch / 2),
        replace(case, data_parallel=2 * case.data_parallel, nodes=2 * case.nodes)
        if case.strategy == "fsdp"
        else case,
    ):
        # A node more brings NCCL's share of the margin, and a second data-parallel rank buckets.
        assert in_use_bytes(memory_use(smaller)) <= in_use_bytes(use) * (1 + 1e-12)


@settings(max_examples=20, deadline=None)
@given(st.lists(cases, min_size=1, max_size=6))
def test_a_table_is_its_cases(many: list[TrainingCase]) -> None:
    table = memory_table(columns_of(many))
    for index, case in enumerate(many):
        assert table.use(index) == memory_use(case)
        assert table.total_bytes[index] == pytest.approx(memory_use(case).total_bytes)


KNOWN_NOT_TO_FIT = {
    "BigScience JeanZay V100": "their activations went to the host's memory or were partitioned",
    "IBM fms-fsdp": "their selective recomputation is of whole layers, some of them",
    "NeMo AutoModel": "the table says no recomputation, where 150 GiB of activations can't be",
    "Qwen fine-tune profile": "full fine-tuning over two GPUs was ZeRO-3; the table says DDP",
}


def test_what_ran_is_said_to_fit() -> None:
    """Every row of the published table ran, so it fitted: 857 of 896 rows as they are stated (more
    as they are read: predict/tables/recomputed.py), all of most sources.

    The micro-batches of llm-foundry fill their GPUs on purpose: a tenth of its 302 rows takes more
    than 90 % here, none more than 100.
    """
    data = Path("references/measured-training.csv").read_bytes()
    rows = read_table(data, "measured-training.csv").rows
    table = memory_table(columns_of([replace(row.case, recomputed_ratio=0.0) for row in rows]))
    shares = table.total_bytes / table.capacity_bytes
    over = [row.source for row, share in zip(rows, shares, strict=True) if share > 1]
    assert len(over) == 39
    assert set(over) <= set(KNOWN_NOT_TO_FIT)
    filled = [s for r, s in zip(rows, shares, strict=True) if r.source.startswith("llm-foundry")]
    assert 0.9 < max(filled) <= 1
    assert statistics.median(filled) > 0.7


def test_sharded_stages_stay_gathered() -> None:
    """Weights are gathered once a step and gradients reduced at its end, as the timeline has it, so
    a stage's are whole in between; two gathered layers would be a fifth of that."""
    case = TrainingCase(
        model=LLAMA3_8B,
        gpu="h100-sxm",
        gpus_per_node=8,
        strategy="fsdp",
        data_parallel=4,
        pipeline_parallel=2,
        seq_len=4096,
        global_batch=32,
        micro_batch=1,
    )
    stage = 16 / 32 * (8.03e9 - 2 * 128256 * 4096)
    buffers_bytes = memory_use(case).buffers_bytes
    assert buffers_bytes > stage * (2 + 2)
    assert buffers_bytes > 3 * memory_use(replace(case, pipeline_parallel=1)).buffers_bytes


@pytest.mark.parametrize(
    ("framework", "parameter_bytes"),
    [("nemo-automodel", 4.0), ("nemo", 2.0), ("Megatron", 2.0), ("deeplearningexamples", 2.0)],
)
def test_a_framework_keeps_what_its_entry_says(framework: str, parameter_bytes: float) -> None:
    """By name and alias: NeMo AutoModel is PyTorch's own DDP, whatever its name begins with."""
    case = replace(gpt2(GPT2_708M, 1024), framework=framework)
    assert memory_use(case).parameters_bytes == pytest.approx(parameter_bytes * 708e6)


@pytest.mark.parametrize(
    ("framework", "said_bytes", "width_bytes"),
    [("torch", None, 4), ("fms-fsdp", None, 2), ("fms-fsdp", 4.0, 4), ("megatron-lm", None, 4)],
)
def test_gradients_are_as_wide_in_memory_as_on_their_way(
    framework: str, said_bytes: float | None, width_bytes: float
) -> None:
    """By the framework's habit, or as the case says."""
    case = replace(gpt2(GPT2_708M, 1024), framework=framework, gradient_bytes=said_bytes)
    columns = columns_of([case])
    assert memory_columns(columns).reduced_bytes[0] == gradient_bytes(columns)[0] == width_bytes
