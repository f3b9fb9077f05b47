"""Does a workload of an experiment ask what the reference trainer does?"""

import pytest

from broadgauge.messages.model_shape import adapted_flops_per_token
from broadgauge.predict.asking.workload_case import (
    HOST_LATENCY_S,
    fabric_of,
    training_case,
    why_unknown,
)
from broadgauge.predict.case import Fabric
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.predictor import flops_per_token
from broadgauge.specs.network import Network, NodePath
from broadgauge.specs.workload import GptModel, TrainWorkload

MODEL = GptModel(layers=6, hidden=384, heads=6, vocabulary=512, seq_len=128)


def workload(**changes: object) -> TrainWorkload:
    return TrainWorkload.model_validate(
        {"kind": "train", "model": MODEL, "batch_per_rank": 4} | changes
    )


def test_batches_are_counted_in_sequences_and_passes_in_micro_batches() -> None:
    case = training_case(
        workload(accumulation=8), gpu="h200", nodes=2, ranks_per_node=4, fabric=Fabric()
    )
    assert case.gpus == case.data_parallel == 8
    assert case.global_batch == 4 * 8 * 8
    assert case.micro_batches == 8
    assert case.sync_every_micro_batch is False


@pytest.mark.parametrize(
    ("changes", "precision", "gradient_bytes"),
    [
        ({}, "fp32", 4),
        ({"dtype": "bfloat16"}, "bf16", 4),
        ({"dtype": "bfloat16", "gradient_dtype": "bfloat16"}, "bf16", 2),
        ({"gradient_dtype": "bfloat16", "strategy": "fsdp"}, "fp32", 2),
    ],
)
def test_gradients_have_a_type_of_their_own(
    changes: dict[str, object], precision: str, gradient_bytes: int
) -> None:
    case = training_case(workload(**changes), gpu="cpu", nodes=2, ranks_per_node=1, fabric=Fabric())
    assert (case.precision, case.gradient_bytes) == (precision, gradient_bytes)
    assert case.model.params == MODEL.parameters


def test_what_is_trained_and_how_is_asked_too() -> None:
    asked = workload(
        strategy="hsdp",
        lora={"rank": 4},
        compile=True,
        activation_checkpointing="full",
        cpu_offload=True,
    )
    case = training_case(asked, gpu="h200", nodes=2, ranks_per_node=4, fabric=Fabric())
    assert (case.strategy, case.lora, case.compiled) == ("hsdp", True, True)
    assert (case.recompute, case.cpu_offload) == ("full", True)
    assert why_unknown(asked, ranks_per_node=4) is None
    plain = training_case(workload(), gpu="h200", nodes=2, ranks_per_node=4, fabric=Fabric())
    assert (plain.lora, plain.compiled, plain.recompute) == (False, False, "none")


def test_a_llamas_shape_is_asked_as_it_is() -> None:
    sizes = {"layers": 3, "hidden": 512, "heads": 8, "kv_heads": 2, "head_dim": 32, "ffn": 1000}
    asked = workload(model={"kind": "llama", **sizes, "tied_head": True})
    model = training_case(asked, gpu="h200", nodes=1, ranks_per_node=1, fabric=Fabric()).model
    assert (model.kv_heads, model.head_dim, model.ffn_hidden) == (2, 32, 1000)
    assert (model.gated_mlp, model.tied_embeddings) == (True, True)
    assert model.params == asked.model.parameters


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"activation_checkpointing": "selective"}, "selective"),
        ({"strategy": "hsdp", "shard_ranks": 2}, "shard_ranks"),
    ],
)
def test_what_the_model_does_not_know_is_said(changes: dict[str, object], words: str) -> None:
    assert words in (why_unknown(workload(**changes), ranks_per_node=4) or "")
    assert why_unknown(workload(strategy="hsdp"), ranks_per_node=4) is None


def test_model_flops_are_the_trainers() -> None:
    """One formula for both: but for what multiplies nothing, and adapters."""
    model = {"kind": "llama", "layers": 8, "hidden": 1024, "heads": 16, "ffn": 2816}
    for lora in (None, {"rank": 1}):
        asked = workload(model=model | {"tied_head": True}, lora=lora)
        shape = asked.model.shape
        trained = shape.flops_per_token
        if asked.lora is not None:
            trained = adapted_flops_per_token(shape, asked.lora.adapters(shape))
        case = training_case(asked, gpu="h200", nodes=1, ranks_per_node=1, fabric=Fabric())
        (predicted,) = flops_per_token(columns_of([case]))
        assert predicted == pytest.approx(trained, rel=0.01)


def test_a_shaped_link_counts_as_measured_at_its_payload_rate() -> None:
    fabric = fabric_of(Network(name="pod-like", rate_gbps=10, nics_per_node=2))
    assert fabric.node_gbps == 20
    assert fabric.measured_node_gbyte_per_s == pytest.approx(20 / 8 * 1448 / 1514)
    assert fabric.latency_s is None


def test_an_unshaped_link_is_as_fast_as_a_measurement_will_say() -> None:
    fabric = fabric_of(Network(name="host", overlay="vxlan"))
    assert fabric.transport == "overlay"
    assert fabric.node_gbps is fabric.measured_node_gbyte_per_s is None


def test_an_added_delay_comes_on_top_of_the_hosts_own() -> None:
    fabric = fabric_of(Network(name="far", rate_gbps=1, delay_s=0.01))
    assert fabric.latency_s == pytest.approx(0.01 + HOST_LATENCY_S)


def test_a_path_inside_a_node_joins_no_nodes() -> None:
    assert fabric_of(NodePath(name="nvlink", path="nvlink")) == fabric_of(None) == Fabric()
