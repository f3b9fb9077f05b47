"""Is a training that can't be refused, in one message that says what would work?"""

from dataclasses import replace

import pytest

from broadgauge.predict.asking.question import check, fault_of
from broadgauge.predict.case import Fabric, ModelShape, TrainingCase
from broadgauge.specs.errors import InputError

LLAMA = ModelShape(
    name="llama3-8b",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    ffn_hidden=14336,
    gated_mlp=True,
    vocabulary=128256,
    params=8.03e9,
    active_params=8.03e9,
)
GOOD = TrainingCase(
    model=LLAMA,
    gpu="h100-sxm",
    nodes=2,
    gpus_per_node=8,
    fabric=Fabric(name="roce-400g", transport="roce", node_gbps=400),
    strategy="megatron",
    data_parallel=4,
    tensor_parallel=2,
    pipeline_parallel=2,
    seq_len=8192,
    global_batch=64,
    micro_batch=1,
)
MIXTRAL = replace(LLAMA, name="mixtral", num_experts=8)


def test_a_training_that_can_be_is_let_through() -> None:
    assert fault_of(GOOD) is None
    check(GOOD)


@pytest.mark.parametrize(
    ("case", "says", "hint"),
    [
        (replace(GOOD, tensor_parallel=3), "32 attention heads, which do not divide", "16, 32"),
        (
            replace(GOOD, pipeline_parallel=64, data_parallel=1, tensor_parallel=1),
            "64 pipeline stages are more than the 32 layers of llama3-8b",
            "at most 32",
        ),
        (
            replace(GOOD, pipeline_parallel=16, virtual_stages=4),
            "16 pipeline stages of 4 parts are more than the 32",
            "at most 8 stages",
        ),
        (
            replace(GOOD, fabric=Fabric(transport="roce", node_gbps=0)),
            "bandwidth is 0 Gbit/s",
            "above zero",
        ),
        (
            replace(GOOD, fabric=Fabric(transport="tcp", measured_node_gbyte_per_s=-1)),
            "bandwidth is -1 GB/s",
            "above zero",
        ),
        (replace(GOOD, fabric=Fabric()), "2 nodes need a network", "--network"),
        (
            replace(GOOD, data_parallel=3),
            "data parallel 3 × tensor parallel 2 × pipeline parallel 2 is 12 GPUs, and 2 nodes of "
            "8 are 16",
            "data parallel 4",
        ),
        (replace(GOOD, nodes=0), "nodes is 0", "1 or more"),
        (replace(GOOD, global_batch=2), "less than one micro-batch", "at least 4"),
        (replace(GOOD, global_batch=65), "no whole number of micro-batches", "64 or 68"),
        (replace(GOOD, micro_batch=float("nan")), "micro batch is nan", "more than 0"),
        (replace(GOOD, micro_batch=0.3), "micro batch is 0.3 sequences", "a whole number"),
        (replace(GOOD, micro_batch=1e300), "micro batch is 1e+300 sequences", "1,000,000,000"),
        (
            replace(GOOD, context_parallel=3, data_parallel=4, nodes=6),
            "8192 tokens does not divide by context parallel 3",
            None,
        ),
        (replace(GOOD, expert_parallel=2), "no experts", None),
        (replace(GOOD, model=MIXTRAL, expert_parallel=3), "8 experts", "1, 2, 4, 8"),
        (replace(GOOD, model=MIXTRAL, expert_parallel=8), "there are 4", "one of 1, 2, 4"),
        (replace(GOOD, zero_stage=4), "ZeRO has no stage 4", "0, 1, 2 or 3"),
        (replace(GOOD, gpu="a100-sxm-80gb", precision="fp8"), "no fp8", "bf16"),
        (replace(GOOD, gpu="v100-sxm-16gb", precision="bf16"), "no bf16", "fp16"),
        (replace(GOOD, virtual_stages=2, global_batch=12), "3 micro-batches", "global batch"),
        (
            replace(GOOD, sequence_parallel=True, tensor_parallel=1, data_parallel=8),
            "sequence parallelism",
            "2 or more",
        ),
        (replace(GOOD, nodes=10**6, data_parallel=2 * 10**6), "8,000,000 GPUs", None),
    ],
)
def test_what_is_wrong_is_said_once(case: TrainingCase, says: str, hint: str | None) -> None:
    with pytest.raises(InputError) as caught:
        check(case)
    assert says in caught.value.message
    assert (caught.value.hint is None) == (hint is None)
    assert (hint or "") in (caught.value.hint or "")


def test_frozen_weights_without_adapters_train_nothing() -> None:
    with pytest.raises(InputError, match="frozen") as refused:
        check(replace(GOOD, quantized_base=True))
    assert "--lora" in str(refused.value)
    check(replace(GOOD, quantized_base=True, lora=True))


def test_an_unknown_gpu_gets_the_nearest_name() -> None:
    with pytest.raises(InputError, match="did you mean `h100-sxm"):
        check(replace(GOOD, gpu="h100-sxn"))
