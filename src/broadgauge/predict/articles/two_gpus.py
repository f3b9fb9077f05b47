"""net1-2025 and skypilot-2025: two GPUs under DDP, two nodes under FSDP, with measured collectives.

Source: "The Impact of GPU Networking (Part 1)" (2025-03-14) and "Network and Storage Benchmarks for
LLM Training on the Cloud" (2025-09-11); figures are in catalog/articles.yaml.
"""

from collections.abc import Iterator

from broadgauge.catalog.articles import Articles, EpochTime
from broadgauge.catalog.models import find_model
from broadgauge.predict.articles.rows import ArticleRow, Goal, Role
from broadgauge.predict.asking.from_catalog import shape_of
from broadgauge.predict.case import CollectiveCurve, Fabric, ModelShape, TrainingCase, Transport
from broadgauge.specs.workloads.workload import CollectiveOp

CHARACTERS = 65
"""Of Shakespeare's text: 85M and 708M are 12 and 36 layers of 12 hidden² without an embedding of
words, so the model reads characters."""
ASSUMED_SEQ_LEN = 256
"""Not published. The two peak memories (3,688 and 24,258 MiB at 85M and 708M) give 21.6 bytes a
parameter (fp32 weights, gradients and Adam, a bf16 copy, Adam's temporaries) and leave 2.0 GB of
activations to the small model: 16 sequences of 256. 1,024 would need 99 % of the GPU's peak."""
LIGHTNING_GRADIENT_BYTES = 4
"""bf16 of Lightning is autocast: weights and gradients stay fp32, as the memories above say."""
ALL_REDUCE_BYTES = 708e6 * 2
"""What the article's all-reduce carried: 708M elements of bf16, "about 1.32 GB" in GiB."""
NVLINK_LATENCY_S = 8e-6
HDR_LATENCY_S = 28e-6
"""Two steps of a ring of two ranks. Source: NVIDIA/nccl, src/graph/tuning.cc, hardware latencies of
NVLink and of the network with the Simple protocol."""
CONTRADICTS = "contradicts itself: 157.60 s on one GPU and 62.96 s on two"
NO_STEPS = "steps of an epoch are published for the large model only; assumed the same"
GOALS = (
    Goal(
        series="baskerville-708m",
        ids=("e-15-5-3",),
        limit_ratio=0.03,
        is_mean=False,
        words="NVLink, from its all-reduce time",
    ),
    Goal(
        series="baskerville-708m",
        ids=("e-15-6-2",),
        limit_ratio=0.06,
        is_mean=False,
        words="HDR, from its all-reduce time",
    ),
    Goal(
        series="nebius-h100",
        ids=("nebius-h100-eth10",),
        limit_ratio=0.05,
        is_mean=False,
        words="Ethernet, from its reduce-scatter",
    ),
)
GPT2_SHAPES = {"gpt2-85m-ddp": (12, 768, 12), "gpt2-large-708m-ddp": (36, 1280, 20)}
"""Layers, hidden size and heads of GPT-2 and GPT-2 large (Radford et al. 2019, table 2)."""
_TRANSPORTS: dict[str, Transport] = {
    "hdr": "infiniband",
    "eth10": "tcp",
    "infiniband": "infiniband",
}


def gpt2_rows(tables: Articles) -> Iterator[ArticleRow]:
    """Second epochs of GPT-2 on one and two A100 of baskerville."""
    for epoch in tables.epoch2_seconds:
        yield _gpt2_row(tables, epoch)


def _gpt2_row(tables: Articles, epoch: EpochTime) -> ArticleRow:
    num_gpus = epoch.nodes * epoch.gpus_per_node
    steps = tables.workloads["gpt2-large-708m-ddp"].steps_per_epoch[num_gpus]
    is_large = epoch.workload == "gpt2-large-708m-ddp"
    published = f"{epoch.seconds:g} s an epoch"
    series = "baskerville-708m" if is_large else "baskerville-85m"
    if epoch.id == "e-15-1":
        return ArticleRow(
            id=epoch.id, series=series, published=published, role=Role.LISTED, reason=CONTRADICTS
        )
    calibrates = epoch.id in ("e-15-4-1", "e-15-2")
    return ArticleRow(
        id=epoch.id,
        series=series,
        published=published,
        role=Role.CALIBRATES if calibrates else Role.SCORED,
        case=gpt2_case(tables, epoch),
        step_time_s=epoch.seconds / steps,
        reason="" if is_large else NO_STEPS,
    )


def gpt2_case(tables: Articles, epoch: EpochTime) -> TrainingCase:
    """DDP of a GPT-2 in bf16 autocast, 16 sequences a GPU."""
    work = tables.workloads[epoch.workload]
    assert work.params is not None
    assert work.batch_size is not None
    layers, hidden, heads = GPT2_SHAPES[epoch.workload]
    num_gpus = epoch.nodes * epoch.gpus_per_node
    return TrainingCase(
        name=epoch.id,
        model=ModelShape(
            name=epoch.workload.removesuffix("-ddp"),
            layers=layers,
            hidden=hidden,
            heads=heads,
            ffn_hidden=4 * hidden,
            gated_mlp=False,
            vocabulary=CHARACTERS,
            params=work.params,
            active_params=work.params,
        ),
        gpu="a100-sxm-40gb",
        nodes=epoch.nodes,
        gpus_per_node=epoch.gpus_per_node,
        fabric=_measured_all_reduce(tables, epoch),
        strategy="ddp",
        data_parallel=num_gpus,
        seq_len=ASSUMED_SEQ_LEN,
        global_batch=work.batch_size * num_gpus,
        micro_batch=work.batch_size,
        precision="bf16",
        gradient_bytes=LIGHTNING_GRADIENT_BYTES,
        flash_attention=False,
        framework="torch",
    )


def _measured_all_reduce(tables: Articles, epoch: EpochTime) -> Fabric:
    """The path with the article's own all-reduce on it."""
    if epoch.network == "none":
        return Fabric()
    [seconds] = [
        each.seconds
        for each in tables.all_reduce
        if each.path == epoch.network and each.backend == "nccl"
    ]
    latency_s = HDR_LATENCY_S if epoch.nodes > 1 else NVLINK_LATENCY_S
    curve = line_curve(
        "all_reduce",
        nodes=epoch.nodes,
        ranks_per_node=epoch.gpus_per_node,
        message_bytes=ALL_REDUCE_BYTES,
        seconds=seconds,
        latency_s=latency_s,
    )
    return Fabric(
        name=epoch.network,
        transport=_TRANSPORTS.get(epoch.network, "none"),
        node_gbps=200 if epoch.nodes > 1 else None,
        curves=(curve,),
    )


def line_curve(
    op: CollectiveOp,
    *,
    nodes: int,
    ranks_per_node: int,
    message_bytes: float,
    seconds: float,
    latency_s: float,
) -> CollectiveCurve:
    """t = latency + bytes / rate through one measured point, at every power of two."""
    s_per_byte = (seconds - latency_s) / message_bytes
    sizes = tuple(float(2**power) for power in range(10, 35))
    return CollectiveCurve(
        op=op,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        message_bytes=sizes,
        time_s=tuple(latency_s + size * s_per_byte for size in sizes),
    )


def gemma_rows(tables: Articles) -> Iterator[ArticleRow]:
    """Mean steps of Gemma 3 12B under FSDP on two H100 nodes, and what has no table."""
    for step in tables.step_seconds:
        [measured] = [r for r in tables.reduce_scatter_ms if r.network == step.network]
        yield ArticleRow(
            id=f"{step.system}-{step.network}",
            series=step.system,
            published=f"{step.seconds:g} s",
            role=Role.SCORED,
            case=gemma_case(step.network, measured.milliseconds / 1e3),
            step_time_s=step.seconds,
            reason="sequence length and batch are the published script's defaults",
        )
    yield ArticleRow(
        id="nebius-h200-gpt-oss-120b",
        series="nebius-h200",
        published=f"{tables.gpt_oss_120b_speedup_infiniband_over_eth10:g}x by InfiniBand",
        role=Role.LISTED,
        reason="a ratio in words; neither batch nor step times are published",
    )


def gemma_case(network: str, reduce_scatter_s: float) -> TrainingCase:
    """FSDP2 over 16 GPUs; what a node carries is that of the published reduce-scatter of a layer.

    Source: skypilot-org/skypilot, examples/training_network_storage_benchmarks (micro-batch 4,
    sequences of 1,024, activation checkpointing).
    """
    model = shape_of(find_model("gemma-3-12b"))
    ranks = 16
    layer_bytes = 2 * (model.params - model.vocabulary * model.hidden) / model.layers
    leaving_bytes = layer_bytes * (ranks - 1) / ranks
    return TrainingCase(
        name=f"gemma-3-12b over {network}",
        model=model,
        gpu="h100-sxm",
        nodes=2,
        gpus_per_node=8,
        fabric=Fabric(
            name=network,
            transport=_TRANSPORTS[network],
            node_gbps=10 if network == "eth10" else 3200,
            measured_node_gbyte_per_s=leaving_bytes / reduce_scatter_s / 1e9,
        ),
        strategy="fsdp",
        data_parallel=ranks,
        zero_stage=3,
        seq_len=1024,
        global_batch=64,
        micro_batch=4,
        precision="bf16",
        gradient_bytes=2,
        recompute="full",
        framework="hf-trainer",
    )
