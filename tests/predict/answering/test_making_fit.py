"""Is what would make a training fit found, the smallest change first?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costly import costly

from broadgauge.catalog.models import find_model
from broadgauge.predict.answering.making_fit import SHORTEST_SEQUENCE, nearest_fits, what_fits
from broadgauge.predict.asking.from_catalog import shape_of
from broadgauge.predict.asking.question import fault_of
from broadgauge.predict.case import Fabric, TrainingCase
from broadgauge.predict.memory.fullest_gpu import memory_use

LLAMA = TrainingCase(
    model=shape_of(find_model("llama3-8b")),
    gpu="h100-sxm",
    nodes=2,
    gpus_per_node=8,
    fabric=Fabric(name="roce", transport="roce", node_gbps=400),
    strategy="fsdp",
    data_parallel=16,
    seq_len=8192,
    global_batch=64,
    micro_batch=4,
)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (replace(LLAMA, micro_batch=2), "full recomputation"),
        (replace(LLAMA, micro_batch=2, recompute="full", seq_len=16384), "micro-batch 1"),
        (
            replace(LLAMA, strategy="ddp", micro_batch=1, recompute="full"),
            "fsdp",
        ),
        (
            replace(
                LLAMA, strategy="megatron", micro_batch=1, recompute="full", zero_stage=1,
                model=shape_of(find_model("llama3-70b")), nodes=8, data_parallel=64,
            ),
            "tp 8",
        ),
    ],
)  # fmt: skip
def test_one_change_is_found(case: TrainingCase, words: str) -> None:
    assert not memory_use(case).is_fitting
    assert what_fits(case) == words


def test_changes_add_up() -> None:
    case = replace(LLAMA, strategy="ddp", micro_batch=4, seq_len=16384)
    assert what_fits(case) == "full recomputation, micro-batch 1 and fsdp"


def test_tensor_and_pipeline_ranks_add_up() -> None:
    case = replace(
        LLAMA, strategy="megatron", micro_batch=1, zero_stage=1, nodes=4, data_parallel=32,
        model=shape_of(find_model("llama3-70b")),
    )  # fmt: skip
    assert what_fits(case) == "tp 8 and pp 2"


def test_what_can_never_fit_is_left_unsaid() -> None:
    huge = replace(
        LLAMA, gpu="t4", seq_len=131072, global_batch=64, micro_batch=1, recompute="full"
    )
    assert what_fits(huge) is None


SEVENTY = replace(LLAMA, model=shape_of(find_model("llama3-70b")), nodes=1, data_parallel=8)
SEVENTY = replace(SEVENTY, micro_batch=1, global_batch=8)
ROCE = Fabric(name="roce", transport="roce", node_gbps=3200)


def test_where_only_the_hosts_memory_helps_other_ways_are_shown_too() -> None:
    found = {each.what: each for each in nearest_fits(SEVENTY, ROCE)}
    assert {what: each.words for what, each in found.items()} == {
        "same GPUs": "full recomputation and CPU offload",
        "more nodes": "full recomputation and 4 nodes",
        "other training": "full recomputation and LoRA",
    }
    more = found["more nodes"].case
    assert (more.nodes, more.data_parallel, more.global_batch) == (4, 32, 32)
    assert more.fabric == ROCE
    assert "more nodes" not in {each.what for each in nearest_fits(SEVENTY)}, "no network is named"


def test_what_is_enough_on_the_same_gpus_is_all_that_is_shown() -> None:
    (only,) = nearest_fits(replace(LLAMA, micro_batch=2), ROCE)
    assert (only.what, only.words) == ("same GPUs", "full recomputation")


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (replace(SEVENTY, gpus_per_node=2, data_parallel=2, global_batch=2), "QLoRA"),
        (replace(LLAMA, seq_len=524_288, micro_batch=1, global_batch=16), "sequences of"),
        (replace(SEVENTY, recompute="full"), "LoRA"),
    ],
)
def test_adapters_and_shorter_sequences_are_found(case: TrainingCase, words: str) -> None:
    other = next(each for each in nearest_fits(case) if each.what == "other training")
    assert words in other.words
    assert other.case.seq_len >= SHORTEST_SEQUENCE


@st.composite
def large_cases(draw: st.DrawFn) -> TrainingCase:
    """On any GPU, most of them too large for it."""
    nodes, micro_batch = draw(st.sampled_from([1, 2, 8])), draw(st.sampled_from([1.0, 8.0]))
    models = ["llama3-8b", "llama3-70b", "llama3-405b", "mixtral-8x7b"]
    return replace(
        LLAMA,
        model=shape_of(find_model(draw(st.sampled_from(models)))),
        gpu=draw(st.sampled_from(["t4", "l40s", "h100-sxm", "b200-sxm"])),
        strategy=draw(st.sampled_from(["ddp", "fsdp", "hsdp"])),
        nodes=nodes,
        data_parallel=8 * nodes,
        seq_len=draw(st.sampled_from([512, 8192, 131072])),
        micro_batch=micro_batch,
        global_batch=micro_batch * 8 * nodes,
        fabric=ROCE if nodes > 1 else Fabric(),
        precision="fp16",
    )


@given(large_cases())
@costly(40)
def test_what_is_near_fits_and_can_be_asked(case: TrainingCase) -> None:
    """And is no other model, GPU or larger batch a rank."""
    found = nearest_fits(case, ROCE)
    assert len(found) <= 3
    for each in found:
        assert fault_of(each.case) is None
        assert memory_use(each.case).is_fitting
        assert (each.case.model, each.case.gpu) == (case.model, case.gpu)
        assert each.case.seq_len <= case.seq_len
        assert each.case.micro_batch <= case.micro_batch
        is_larger = each.case.nodes > case.nodes
        assert is_larger == (each.what == "more nodes")
        is_other = each.case.lora or each.case.seq_len < case.seq_len
        assert is_other == (each.what == "other training")
        if each.case.seq_len < case.seq_len:  # no more than is needed
            longer = replace(each.case, seq_len=2 * each.case.seq_len)
            assert not memory_use(longer).is_fitting
