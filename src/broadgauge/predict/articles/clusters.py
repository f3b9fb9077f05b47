"""redhat-network-2025 and redhat-gpudirect-2025: OpenShift clusters with four kinds of network.

Source: "Network performance in distributed training" (2025-10-16) and "Accelerate model training on
OpenShift AI with NVIDIA GPUDirect RDMA"; figures are in catalog/articles.yaml.
"""

import math
from collections.abc import Iterator

from broadgauge.catalog.articles import Articles, Throughput
from broadgauge.catalog.models import find_model
from broadgauge.predict.articles.rows import ArticleRow, Goal, Role
from broadgauge.predict.asking.from_catalog import shape_of
from broadgauge.predict.case import Fabric, TrainingCase

GPUS = {"l40s-cluster": "l40s", "h100-cluster": "h100-sxm"}
FABRICS = {
    "none": Fabric(),
    "pod": Fabric(name="pod", transport="overlay"),
    "vnic": Fabric(name="vnic", transport="virtio"),
    "sriov": Fabric(name="sriov", transport="sriov-tcp", node_gbps=400),
    "sriov-rdma": Fabric(name="sriov-rdma", transport="roce", node_gbps=400),
}
"""vNICs are given no nominal rate: the L40S nodes had as many as nodes took part, and neither one
nor several of them carry what their profile promises."""
CALIBRATING = {
    ("l40s-cluster", "none", 1),
    ("l40s-cluster", "pod", 2),
    ("l40s-cluster", "vnic", 8),
    ("h100-cluster", "none", 1),
}
"""One point per system and network. vNIC from 8 nodes: with 2 it is compute-bound and says nothing
of its network."""
BATCH_WAS_VARIED = (
    "the batch of this row is not published (it was varied), so only batch x rate is identified; "
    "predicted with the published batch and the class prior of its network"
)
GOALS = (
    Goal(
        series="l40s-cluster",
        ids=(),
        limit_ratio=0.09,
        is_mean=True,
        words="one calibration point per system and network",
    ),
    Goal(
        series="h100-cluster",
        ids=("h100-cluster-sriov-2", "h100-cluster-sriov-rdma-2"),
        limit_ratio=0.06,
        is_mean=False,
        words="SR-IOV from its nominal rate",
    ),
)


def granite_rows(tables: Articles) -> Iterator[ArticleRow]:
    """Fine-tuning of an 8B model with HSDP on two clusters."""
    for row in tables.throughput_samples_per_s:
        yield _granite_row(tables, row)


def _granite_row(tables: Articles, row: Throughput) -> ArticleRow:
    key = (row.system, row.network, row.nodes)
    is_unknown_batch = row.system == "h100-cluster" and row.network in ("pod", "vnic")
    role = Role.CALIBRATES if key in CALIBRATING else Role.SCORED
    case = granite_case(tables, row.system, row.nodes, FABRICS[row.network])
    return ArticleRow(
        id=f"{row.system}-{row.network}-{row.nodes}",
        series=row.system,
        published=f"{row.samples_per_s:g} samples/s",
        role=Role.FROM_PRIOR if is_unknown_batch else role,
        case=case,
        step_time_s=case.global_batch / row.samples_per_s,
        reason=BATCH_WAS_VARIED if is_unknown_batch else "",
    )


def granite_case(tables: Articles, system: str, nodes: int, fabric: Fabric) -> TrainingCase:
    """HYBRID_SHARD: sharded in a node; gradients cross nodes after each micro-batch.

    The trainer accumulates as few micro-batches as fit under `max_batch_len` tokens a GPU, all of
    one length (instructlab/training, multipack_sampler.py). Activation checkpointing and bf16
    gradients are instructlab.training's settings for FSDP.
    """
    work = tables.workloads["granite-8b-ilab"]
    assert work.mean_tokens_per_sample is not None
    assert work.max_batch_len_tokens is not None
    assert work.effective_batch_size_samples is not None
    gpus_per_node = tables.systems[system].gpus_per_node
    samples = work.effective_batch_size_samples
    samples_of_rank = samples / (nodes * gpus_per_node)
    accumulation = math.ceil(
        samples_of_rank * work.mean_tokens_per_sample / work.max_batch_len_tokens
    )
    return TrainingCase(
        name=f"granite-8b on {nodes} nodes of {system}",
        model=shape_of(find_model("granite-3.1-8b")),
        gpu=GPUS[system],
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        fabric=fabric,
        strategy="hsdp",
        data_parallel=nodes * gpus_per_node,
        seq_len=work.mean_tokens_per_sample,
        global_batch=samples,
        micro_batch=samples_of_rank / accumulation,
        precision="bf16",
        gradient_bytes=2,
        recompute="full",
        cpu_offload=True,
        framework="hf-trainer",
        sync_every_micro_batch=True,
    )


def lora_rows(tables: Articles) -> Iterator[ArticleRow]:
    """Hours of a LoRA fine-tuning on two A40 nodes."""
    for row in tables.completion_hours:
        yield ArticleRow(
            id=f"a40-pair-{row.network}",
            series="a40-pair",
            published=f"{row.hours:g} h",
            role=Role.LISTED,
            reason="tokens a step are not published, and evaluation and checkpoints are inside "
            "the hours",
        )
