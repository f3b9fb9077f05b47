"""Which question does a workload of an experiment ask? `TrainWorkload` → `TrainingCase`."""

from dataclasses import replace

from broadgauge.messages.model_shape import GptShape
from broadgauge.predict.case import Fabric, ModelShape, Precision, TrainingCase, Transport
from broadgauge.specs.network import Network, NodePath
from broadgauge.specs.workload import DATA_TYPE_BYTES, DataType, TrainedModel, TrainWorkload

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
    return TrainingCase(
        name=name or workload.name,
        model=model_shape(workload.model),
        gpu=gpu,
        nodes=nodes,
        gpus_per_node=ranks_per_node,
        fabric=fabric,
        strategy=workload.strategy,
        data_parallel=ranks,
        seq_len=workload.model.seq_len,
        global_batch=float(workload.batch_per_rank * workload.accumulation * ranks),
        micro_batch=float(workload.batch_per_rank),
        precision=PRECISIONS[workload.dtype],
        gradient_bytes=float(DATA_TYPE_BYTES[workload.gradient_dtype]),
        framework=REFERENCE_FRAMEWORK,
        reshard_after_forward=workload.reshard_after_forward,
        sync_every_micro_batch=workload.reduce_each_micro_batch,
        recompute=workload.activation_checkpointing,
        compiled=workload.compile,
        lora=workload.lora is not None,
        cpu_offload=workload.cpu_offload,
        bucket_bytes=None
        if workload.bucket_cap_bytes is None
        else float(workload.bucket_cap_bytes),
    )


def why_unknown(workload: TrainWorkload, ranks_per_node: int) -> str | None:
    """What of this training does the model of a step not know? None: it knows all of it."""
    if workload.activation_checkpointing == "selective":
        return (
            "`activation_checkpointing: selective` keeps matrix products and attention: how long "
            "the rest takes again is not known"
        )
    shards = workload.shard_ranks
    if shards is not None and shards != ranks_per_node:
        return f"`shard_ranks: {shards}`: of HSDP only shards over a whole node are known"
    return None


def model_shape(model: TrainedModel) -> ModelShape:
    """The reference trainer's: GPT-2's block, an MLP of 4 x hidden; or Llama's."""
    shape = model.shape
    plain = ModelShape(
        name=f"{model.kind}-{shape.layers}x{shape.hidden}",
        layers=shape.layers,
        hidden=shape.hidden,
        heads=shape.heads,
        kv_heads=shape.heads,
        ffn_hidden=4 * shape.hidden,
        gated_mlp=False,
        vocabulary=shape.vocabulary,
        tied_embeddings=shape.is_head_tied,
        params=float(shape.parameters),
        active_params=float(shape.parameters),
    )
    if isinstance(shape, GptShape):
        return plain
    return replace(
        plain,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        ffn_hidden=shape.ffn,
        gated_mlp=True,
    )


def fabric_of(network: Network | NodePath | None) -> Fabric:
    """What is known of an experiment's network before anything ran on it?

    A shaped link carries its payload rate to within a percent (docs/measurements.md), so it counts
    as measured; an unshaped one is as fast as the host, which only a measurement tells. A path
    inside one node joins no nodes.
    """
    if not isinstance(network, Network):
        return Fabric()
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
