"""Which question does a workload of an experiment ask? `TrainWorkload` → `TrainingCase`."""

from dataclasses import replace

from broadgauge.engine.kinds.training import most_micro_batches, split
from broadgauge.messages.model_shape import GptShape
from broadgauge.predict.asking.from_catalog import priced_as
from broadgauge.predict.asking.packed_rows import padded_tokens
from broadgauge.predict.case import Fabric, ModelShape, Precision, TrainingCase, Transport
from broadgauge.specs.networks.face import NetworkFace
from broadgauge.specs.networks.network import Network, NodePath
from broadgauge.specs.networks.pod_networks import PodNetwork
from broadgauge.specs.workloads.workload import (
    DATA_TYPE_BYTES,
    DataType,
    TrainedModel,
    TrainWorkload,
)

REFERENCE_FRAMEWORK = "torch"
"""The reference trainer: plain eager PyTorch with a fused AdamW and no clipping."""
PRECISIONS: dict[DataType, Precision] = {"float32": "fp32", "bfloat16": "bf16"}
"""float32 is not TF32: torch leaves TF32 off for matrix products. Source: torch 2.11,
`torch.get_float32_matmul_precision()` is `highest` unless it is set."""
HOST_LATENCY_S = 24e-6
"""Of a TCP message between two nodes of one host, before any delay that is asked for. Half of the
round trips of 44 to 50 µs in docs/measurements.md."""


def training_case(
    workload: TrainWorkload,
    *,
    gpu: str,
    nodes: int,
    ranks_per_node: int,
    fabric: Fabric,
    name: str = "",
) -> TrainingCase:
    """What does this training ask, on so many ranks over this fabric?

    `gpu` is a name of the catalog, or that of a system file's device.
    """
    ranks = nodes * ranks_per_node
    micro_batch = float(workload.batch_per_rank)
    if workload.packing is not None:  # as many tokens as sequences of `seq_len` have
        micro_batch = padded_tokens(workload, workload.packing, ranks) / workload.model.seq_len
    return TrainingCase(
        name=name or workload.name,
        model=_trained_shape(workload),
        gpu=gpu,
        nodes=nodes,
        gpus_per_node=ranks_per_node,
        fabric=fabric,
        strategy=workload.strategy,
        data_parallel=ranks,
        seq_len=workload.model.seq_len,
        global_batch=micro_batch * most_micro_batches(workload, ranks) * ranks,
        micro_batch=micro_batch,
        precision=PRECISIONS[workload.dtype],
        gradient_bytes=float(DATA_TYPE_BYTES[workload.gradient_dtype]),
        framework=REFERENCE_FRAMEWORK,
        compiled=workload.compile,
        recompute=workload.activation_checkpointing,
        flash_attention=workload.attention != "eager",
        lora=workload.lora is not None,
        cpu_offload=workload.cpu_offload,
        reshard_after_forward=workload.reshard_after_forward,
        sync_every_micro_batch=workload.reduce_each_micro_batch,
        bucket_bytes=None
        if workload.bucket_cap_bytes is None
        else float(workload.bucket_cap_bytes),
    )


def why_unknown(workload: TrainWorkload, nodes: int, ranks_per_node: int) -> str | None:
    """What of this training, on so many ranks, can't be asked? None: all of it can."""
    try:
        split(workload, nodes, ranks_per_node)
    except ValueError as error:
        return f"`{workload.name}` on {nodes}x{ranks_per_node}: {error}"
    if workload.activation_checkpointing == "selective":
        return (
            f"`activation_checkpointing: selective` of `{workload.name}`: it keeps the results of "
            "matrix products and of attention, and how long the rest takes again is not known"
        )
    shards = workload.shard_ranks
    if shards is None or shards == ranks_per_node:
        return None
    return (
        f"`shard_ranks: {shards}` of `{workload.name}` on {nodes}x{ranks_per_node}: of HSDP "
        "predictions know groups of a whole node only"
    )


def _trained_shape(workload: TrainWorkload) -> ModelShape:
    """With its adapters, counted."""
    plain = model_shape(workload.model)
    if workload.lora is None:
        return plain
    shape, lora = workload.model.shape, workload.lora
    targets = lora.adapters(shape).targets
    return replace(
        plain,
        adapter_params=workload.trained_parameters / shape.layers,
        adapter_rank=float(lora.rank),
        adapter_inputs=float(sum(shape.linears[target][0] for target in targets)),
    )


def model_shape(model: TrainedModel) -> ModelShape:
    """The reference trainer's: GPT-2's block, an MLP of 4 x hidden; or Llama's."""
    shape = model.shape
    plain = ModelShape(
        name=_name_of(model),
        layers=shape.layers,
        hidden=shape.hidden,
        heads=shape.heads,
        kv_heads=shape.heads,
        ffn_hidden=4 * shape.hidden,
        gated_mlp=False,
        vocabulary=shape.vocabulary,
        tied_embeddings=shape.is_head_tied,
        params=float(shape.parameters),
        active_params=float(shape.active_parameters),
        layer_params=float(shape.block_parameters),
    )
    if isinstance(shape, GptShape):
        return plain
    return replace(
        plain,
        architecture="moe" if shape.is_mixture else "decoder",
        num_experts=shape.experts,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        ffn_hidden=shape.ffn_hidden,
        gated_mlp=True,
    )


def _name_of(model: TrainedModel) -> str:
    """A twin is not called as the whole model is."""
    if model.shape_of is None:
        return f"{model.kind}-{model.layers}x{model.shape.hidden}"
    if not model.is_twin:
        return model.shape_of
    return f"{model.shape_of} ({model.layers} of {model.shape_of_layers} layers)"


def fabric_of(network: Network | NodePath | None) -> Fabric:
    """What is known of an experiment's network before anything ran on it?

    A shaped link carries its payload rate to within a percent (docs/measurements.md), so it counts
    as measured; an unshaped one is as fast as the host, which only a measurement tells. One that is
    not emulated is what its face says of it: the transport, and the line rate of its data sheet. A
    path inside one node joins no nodes.
    """
    if not isinstance(network, Network):
        return Fabric()
    if not network.has_emulated_face and network.any_face is not None:
        return _as_its_face_says(network, network.any_face)
    transport: Transport = "overlay" if network.overlay else "tcp"
    nics = network.nics_per_node
    count = 1 if nics == "nodes" else nics
    rate_gbps, payload_gbps = network.slower_rate_gbps, network.payload_rate_gbps
    return Fabric(
        name=network.name,
        transport=transport,
        node_gbps=None if rate_gbps is None else rate_gbps * count,
        measured_node_gbyte_per_s=None if payload_gbps is None else payload_gbps * count / 8,
        latency_s=network.delay_s + HOST_LATENCY_S if network.delay_s else None,
    )


def _as_its_face_says(network: Network, face: NetworkFace) -> Fabric:
    """The pods' own network is an overlay, as nearly every cluster's is."""
    is_pods_own = isinstance(face, PodNetwork) and face.transport == "tcp"
    nominal = face.nominal_gbps
    return Fabric(
        name=network.name,
        transport="overlay" if is_pods_own else priced_as(face.transport or "tcp"),
        node_gbps=None if nominal is None else nominal * network.num_face_nics,
    )
