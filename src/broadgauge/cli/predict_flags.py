"""Which flags ask `predict` a question? Each takes one value or a list: `--nodes 2,4,8`."""

import argparse
from collections.abc import Sequence
from typing import Any

from broadgauge.cli.flags import (
    Flag,
    add_flags_of,
    one_of,
    read_count,
    read_name,
    read_no,
    read_number,
    read_time_s,
    read_values,
    read_yes,
)
from broadgauge.cli.storage_flags import STORAGE_FLAGS


def _gradient_bytes(flag: str, text: str) -> float:
    sizes = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0}
    return sizes[one_of(*sizes)(flag, text)]


FLAGS: tuple[Flag, ...] = (
    Flag(name="--model", field="model", read=read_name, metavar="NAME", help="of the catalog"),
    Flag(name="--gpu", field="gpu", read=read_name, metavar="NAME", help="of the catalog"),
    Flag(
        name="--node",
        field="node",
        read=read_name,
        metavar="NAME",
        help="of the catalog, instead of --gpu: p5.48xlarge, dgx-h100",
    ),
    Flag(name="--nodes", field="nodes", read=read_count, metavar="N", help="how many"),
    Flag(
        name="--network",
        field="network",
        read=read_name,
        metavar="NAME[=RATE]",
        help="between nodes; with RATE what it was measured to carry: `pod=0.48GB/s`",
    ),
    Flag(
        name="--strategy",
        field="strategy",
        read=one_of("ddp", "fsdp", "hsdp", "megatron"),
        metavar="NAME",
        help="ddp, fsdp, hsdp or megatron (tensor and pipeline parallel)",
    ),
    Flag(
        name="--gpus-per-node",
        field="gpus_per_node",
        read=read_count,
        metavar="N",
        help="of each node",
    ),
    Flag(
        name="--tp", field="tensor_parallel", read=read_count, metavar="N", help="tensor parallel"
    ),
    Flag(
        name="--pp", field="pipeline_parallel", read=read_count, metavar="N", help="pipeline stages"
    ),
    Flag(
        name="--virtual-stages",
        field="virtual_stages",
        read=read_count,
        metavar="N",
        help="parts of an interleaved stage",
    ),
    Flag(
        name="--cp", field="context_parallel", read=read_count, metavar="N", help="context parallel"
    ),
    Flag(
        name="--ep", field="expert_parallel", read=read_count, metavar="N", help="expert parallel"
    ),
    Flag(
        name="--sequence-parallel",
        field="sequence_parallel",
        read=read_yes,
        metavar="yes|no",
        help="Megatron's",
        is_switch=True,
    ),
    Flag(name="--zero", field="zero_stage", read=read_count, metavar="0…3", help="ZeRO's stage"),
    Flag(name="--seq-len", field="seq_len", read=read_count, metavar="N", help="tokens a sequence"),
    Flag(
        name="--micro-batch",
        field="micro_batch",
        read=read_number,
        metavar="N",
        help="sequences a rank and pass",
    ),
    Flag(
        name="--global-batch",
        field="global_batch",
        read=read_number,
        metavar="N",
        help="sequences a step, all ranks together",
    ),
    Flag(
        name="--accumulation",
        field="accumulation",
        read=read_count,
        metavar="N",
        help="micro-batches a step, instead of --global-batch",
    ),
    Flag(
        name="--precision",
        field="precision",
        read=one_of("fp32", "tf32", "fp16", "bf16", "fp8"),
        metavar="NAME",
        help="of the arithmetic",
    ),
    Flag(
        name="--gradients",
        field="gradient_bytes",
        read=_gradient_bytes,
        metavar="fp32|bf16",
        help="what gradients are reduced in",
    ),
    Flag(
        name="--recompute",
        field="recompute",
        read=one_of("none", "selective", "full"),
        metavar="NAME",
        help="activations: none, selective or full",
    ),
    Flag(
        name="--no-flash-attention",
        field="flash_attention",
        read=read_no,
        metavar="yes|no",
        help="attention that writes its matrix",
        is_switch=True,
    ),
    Flag(
        name="--compile",
        field="compiled",
        read=read_yes,
        metavar="yes|no",
        help="torch.compile",
        is_switch=True,
    ),
    Flag(
        name="--lora",
        field="lora",
        read=read_yes,
        metavar="yes|no",
        help="adapters on frozen weights",
        is_switch=True,
    ),
    Flag(
        name="--int4-base",
        field="quantized_base",
        read=read_yes,
        metavar="yes|no",
        help="frozen weights in 4 bits (QLoRA)",
        is_switch=True,
    ),
    Flag(
        name="--cpu-offload",
        field="cpu_offload",
        read=read_yes,
        metavar="yes|no",
        help="states in the host's memory",
        is_switch=True,
    ),
    Flag(
        name="--keep-gathered",
        field="reshard_after_forward",
        read=read_no,
        metavar="yes|no",
        help="FSDP: weights stay whole until the backward pass",
        is_switch=True,
    ),
    Flag(
        name="--data-stall",
        field="data_s",
        read=read_time_s,
        metavar="TIME",
        help="what a step waits for its data, as measured: `20ms`",
    ),
    Flag(
        name="--checkpoint-stall",
        field="checkpoint_s",
        read=read_time_s,
        metavar="TIME",
        help="a checkpoint's stall over the steps between two",
    ),
    *STORAGE_FLAGS,
    Flag(
        name="--framework",
        field="framework",
        read=read_name,
        metavar="NAME",
        help="of the catalog: torch, megatron, hf-trainer, …",
    ),
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Declares them all."""
    group = parser.add_argument_group("the question (each flag takes a list: --nodes 2,4,8)")
    add_flags_of(group, FLAGS)


def read_properties(options: argparse.Namespace) -> dict[str, Sequence[Any]]:
    """What was asked. Raises InputError."""
    properties = read_values(options, FLAGS)
    last = ("network", "nodes")  # rows of the table go by network, then by size
    return {
        **{field: values for field, values in properties.items() if field not in last},
        **{field: properties[field] for field in last if field in properties},
    }
