"""Does a workload of an experiment ask what the reference trainer does?"""

import pytest

from broadgauge.predict.asking.workload_case import (
    HOST_LATENCY_S,
    fabric_of,
    model_shape,
    training_case,
    why_unknown,
)
from broadgauge.predict.case import Fabric
from broadgauge.predict.predictor import predict
from broadgauge.predict.system.trainer_bytes import step_bytes
from broadgauge.specs.networks.network import Network, NodePath
from broadgauge.specs.workloads.workload import GptModel, TrainWorkload

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


def test_what_is_trained_and_kept_is_asked_as_it_is() -> None:
    asked = workload(
        strategy="hsdp",
        lora={"rank": 4, "targets": ["projection"]},
        activation_checkpointing="full",
        attention="eager",
        cpu_offload=True,
        reduce_each_micro_batch=True,
        accumulation=2,
    )
    case = training_case(asked, gpu="h200", nodes=2, ranks_per_node=4, fabric=Fabric())
    assert (case.lora, case.recompute, case.flash_attention) == (True, "full", False)
    assert (case.cpu_offload, case.sync_every_micro_batch) == (True, True)
    assert case.model.adapter_params == 4 * (384 + 384)
    plain = training_case(workload(), gpu="h200", nodes=2, ranks_per_node=4, fabric=Fabric())
    assert (plain.lora, plain.recompute, plain.flash_attention) == (False, "none", True)
    assert plain.model.adapter_params is None


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


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("accumulation", [1, 3])
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_as_many_bytes_are_predicted_as_the_trainer_sends(
    strategy: str, accumulation: int, keeps: bool
) -> None:
    """Kept weights are gathered once a step, whatever the number of micro-batches."""
    asked = workload(strategy=strategy, accumulation=accumulation, reshard_after_forward=not keeps)
    fabric = fabric_of(Network(name="link", rate_gbps=1))
    case = training_case(asked, gpu="h200", nodes=2, ranks_per_node=4, fabric=fabric)
    (found,) = predict([case])
    sent = step_bytes(asked, "nccl", 2, 4)
    assert found.network_bytes == pytest.approx(sent, rel=0.01)


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


@pytest.mark.parametrize(
    ("face", "transport", "node_gbps"),
    [
        ({"attachment": "pod"}, "overlay", None),
        ({"attachment": "host-device", "devices": ["a", "b"], "transport": "virtio",
          "ipam": "dhcp", "nominal_gbps": 200}, "virtio", 400),
        ({"attachment": "existing", "definitions": ["a", "b"], "resources": "c/d",
          "transport": "omnipath", "nominal_gbps": 100}, "infiniband", 200),
        ({"attachment": "macvlan", "devices": ["a", "b"], "ipam": "dhcp"}, "tcp", None),
    ],
)  # fmt: skip
def test_what_is_not_emulated_is_what_its_face_says(
    face: dict[str, object], transport: str, node_gbps: float | None
) -> None:
    """And nothing of it counts as measured."""
    nics = 1 if face["attachment"] == "pod" else 2
    network = Network.model_validate({"name": "n", "nics_per_node": nics, "kubernetes": face})
    fabric = fabric_of(network.on_nodes(2))
    assert (fabric.transport, fabric.node_gbps) == (transport, node_gbps)
    assert fabric.measured_node_gbyte_per_s is None
    shaped = Network.model_validate({"name": "n", "rate_gbps": 10, "kubernetes": face})
    assert fabric_of(shaped.on_nodes(2)).node_gbps == 10


@pytest.mark.parametrize(
    ("changes", "shape", "reason"),
    [
        ({"strategy": "hsdp"}, (2, 2), None),
        ({"strategy": "hsdp", "shard_ranks": 2}, (4, 2), None),
        ({"strategy": "hsdp"}, (2, 1), "`train` on 2x1: HSDP in groups of one rank is DDP"),
        (
            {"strategy": "hsdp", "shard_ranks": 2},
            (2, 4),
            "`shard_ranks: 2` of `train` on 2x4: of HSDP predictions know groups of a whole node",
        ),
        ({"strategy": "fsdp", "compile": True}, (2, 4), None),
        ({"activation_checkpointing": "full", "lora": {"rank": 4}}, (2, 4), None),
        (
            {"activation_checkpointing": "selective"},
            (2, 4),
            "`activation_checkpointing: selective` of `train`: it keeps the results of matrix",
        ),
    ],
)
def test_what_can_not_be_asked_says_why(
    changes: dict[str, object], shape: tuple[int, int], reason: str | None
) -> None:
    found = why_unknown(workload(**changes), *shape)
    assert found is None if reason is None else found is not None and found.startswith(reason)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "gpt-6x384"),
        ({"shape_of": "gpt2", "shape_of_layers": 6}, "gpt2"),
        ({"shape_of": "gpt2", "shape_of_layers": 12}, "gpt2 (6 of 12 layers)"),
    ],
)
def test_a_twin_is_not_called_as_the_whole_model(changes: dict[str, object], name: str) -> None:
    assert model_shape(MODEL.model_copy(update=changes)).name == name


def test_a_compiled_step_is_asked_as_one() -> None:
    asked = workload(compile=True, model={"kind": "llama", "kv_heads": 2, "head_dim": 32})
    case = training_case(asked, gpu="h200", nodes=2, ranks_per_node=4, fabric=Fabric())
    assert case.compiled
    shape = case.model
    assert (shape.kv_heads, shape.head_dim, shape.ffn_hidden, shape.gated_mlp) == (2, 32, 688, True)
    assert not shape.tied_embeddings
