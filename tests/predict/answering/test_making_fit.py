"""Is what would make a training fit found, the smallest change first?"""

from dataclasses import replace

import pytest

from broadgauge.catalog.models import find_model
from broadgauge.predict.answering.making_fit import what_fits
from broadgauge.predict.asking.from_catalog import shape_of
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
    assert what_fits(case) == "full recomputation and micro-batch 1 and fsdp"


def test_tensor_and_pipeline_ranks_add_up() -> None:
    case = replace(
        LLAMA, strategy="megatron", micro_batch=1, zero_stage=1, nodes=4, data_parallel=32,
        model=shape_of(find_model("llama3-70b")),
    )  # fmt: skip
    assert what_fits(case) == "full recomputation and tp 8 and pp 2"


def test_what_can_never_fit_is_left_unsaid() -> None:
    huge = replace(
        LLAMA, gpu="t4", seq_len=131072, global_batch=64, micro_batch=1, recompute="full"
    )
    assert what_fits(huge) is None
