"""Which flags ask `predict` a question? Each takes one value or a list: `--nodes 2,4,8`."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Read = Callable[[str, str], Any]
"""Flag and one value's text → the value. Raises InputError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag, which is one axis of the question."""

    name: str
    field: str
    """Of `Properties`."""
    read: Read
    metavar: str
    help: str
    is_switch: bool = False
    """`--lora` alone is `--lora yes`."""


def _name(flag: str, text: str) -> str:  # noqa: ARG001
    return text


def _count(flag: str, text: str) -> int:
    from broadgauge.specs.errors import InputError

    digits = text.replace("_", "")
    if not digits.isdigit() or len(digits) > 12:
        raise InputError(f"{flag} {text}: not a whole number", hint=f"{flag} 2,4,8")
    return int(digits)


def _number(flag: str, text: str) -> float:
    from broadgauge.specs.errors import InputError

    try:
        return float(text)
    except ValueError:
        raise InputError(f"{flag} {text}: not a number", hint=f"{flag} 1,2,4") from None


def read_ratio(flag: str, text: str) -> float:
    """`10%` or `0.1` → 0.1. Raises InputError."""
    from broadgauge.specs.errors import InputError

    number, percent, rest = text.strip().partition("%")
    try:
        ratio = float(number) / (100 if percent else 1)
    except ValueError:
        ratio = -1.0
    if rest or not 0 < ratio < 10:
        raise InputError(f"{flag} {text}: not a share above 0", hint=f"{flag} 10%")
    return ratio


def _time_s(flag: str, text: str) -> float:
    from broadgauge.specs.errors import InputError
    from broadgauge.specs.units import parse_time_s

    try:
        seconds = parse_time_s(text)
    except ValueError as error:
        reason = str(error).replace(" in quotes", "")
        raise InputError(f"{flag} {text}: {reason}", hint=f"{flag} 20ms") from None
    if not isinstance(seconds, float) or not 0 <= seconds < 1e6:
        raise InputError(f"{flag} {text}: not a time of a step", hint=f"{flag} 20ms")
    return seconds


def _yes(flag: str, text: str) -> bool:
    from broadgauge.specs.errors import InputError

    if text not in ("yes", "no"):
        raise InputError(f"{flag} {text}: it is yes or no", hint=f"{flag}, or {flag} yes,no")
    return text == "yes"


def _no(flag: str, text: str) -> bool:
    return not _yes(flag, text)


def _one_of(*known: str) -> Read:
    def read(flag: str, text: str) -> str:
        from broadgauge.specs.base import did_you_mean
        from broadgauge.specs.errors import InputError

        if text not in known:
            raise InputError(f"{flag} {text}: not known", hint=did_you_mean(text, known))
        return text

    return read


def _gradient_bytes(flag: str, text: str) -> float:
    sizes = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0}
    return sizes[_one_of(*sizes)(flag, text)]


FLAGS: tuple[Flag, ...] = (
    Flag(
        name="--model",
        field="model",
        read=_name,
        metavar="NAME",
        help="of the catalog, or the path of a Hugging Face config.json",
    ),
    Flag(name="--gpu", field="gpu", read=_name, metavar="NAME", help="of the catalog"),
    Flag(
        name="--node",
        field="node",
        read=_name,
        metavar="NAME",
        help="of the catalog, instead of --gpu: p5.48xlarge, dgx-h100",
    ),
    Flag(name="--nodes", field="nodes", read=_count, metavar="N", help="how many"),
    Flag(
        name="--network",
        field="network",
        read=_name,
        metavar="NAME[=RATE]",
        help="between nodes; with RATE what it was measured to carry: `pod=0.48GB/s`",
    ),
    Flag(
        name="--strategy",
        field="strategy",
        read=_one_of("ddp", "fsdp", "hsdp", "megatron"),
        metavar="NAME",
        help="ddp, fsdp, hsdp or megatron (tensor and pipeline parallel)",
    ),
    Flag(
        name="--gpus-per-node", field="gpus_per_node", read=_count, metavar="N", help="of each node"
    ),
    Flag(name="--tp", field="tensor_parallel", read=_count, metavar="N", help="tensor parallel"),
    Flag(name="--pp", field="pipeline_parallel", read=_count, metavar="N", help="pipeline stages"),
    Flag(
        name="--virtual-stages",
        field="virtual_stages",
        read=_count,
        metavar="N",
        help="parts of an interleaved stage",
    ),
    Flag(name="--cp", field="context_parallel", read=_count, metavar="N", help="context parallel"),
    Flag(name="--ep", field="expert_parallel", read=_count, metavar="N", help="expert parallel"),
    Flag(
        name="--sequence-parallel",
        field="sequence_parallel",
        read=_yes,
        metavar="yes|no",
        help="Megatron's",
        is_switch=True,
    ),
    Flag(name="--zero", field="zero_stage", read=_count, metavar="0…3", help="ZeRO's stage"),
    Flag(name="--seq-len", field="seq_len", read=_count, metavar="N", help="tokens a sequence"),
    Flag(
        name="--micro-batch",
        field="micro_batch",
        read=_number,
        metavar="N",
        help="sequences a rank and pass",
    ),
    Flag(
        name="--global-batch",
        field="global_batch",
        read=_number,
        metavar="N",
        help="sequences a step, all ranks together",
    ),
    Flag(
        name="--accumulation",
        field="accumulation",
        read=_count,
        metavar="N",
        help="micro-batches a step, instead of --global-batch",
    ),
    Flag(
        name="--precision",
        field="precision",
        read=_one_of("fp32", "tf32", "fp16", "bf16", "fp8"),
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
        read=_one_of("none", "selective", "full"),
        metavar="NAME",
        help="activations: none, selective or full",
    ),
    Flag(
        name="--no-flash-attention",
        field="flash_attention",
        read=_no,
        metavar="yes|no",
        help="attention that writes its matrix",
        is_switch=True,
    ),
    Flag(
        name="--compile",
        field="compiled",
        read=_yes,
        metavar="yes|no",
        help="torch.compile",
        is_switch=True,
    ),
    Flag(
        name="--lora",
        field="lora",
        read=_yes,
        metavar="yes|no",
        help="adapters on frozen weights",
        is_switch=True,
    ),
    Flag(
        name="--int4-base",
        field="quantized_base",
        read=_yes,
        metavar="yes|no",
        help="frozen weights in 4 bits (QLoRA)",
        is_switch=True,
    ),
    Flag(
        name="--cpu-offload",
        field="cpu_offload",
        read=_yes,
        metavar="yes|no",
        help="states in the host's memory",
        is_switch=True,
    ),
    Flag(
        name="--keep-gathered",
        field="reshard_after_forward",
        read=_no,
        metavar="yes|no",
        help="FSDP: weights stay whole until the backward pass",
        is_switch=True,
    ),
    Flag(
        name="--data-stall",
        field="data_s",
        read=_time_s,
        metavar="TIME",
        help="what a step waits for its data, as measured: `20ms`",
    ),
    Flag(
        name="--checkpoint-stall",
        field="checkpoint_s",
        read=_time_s,
        metavar="TIME",
        help="a checkpoint's stall over the steps between two",
    ),
    Flag(
        name="--framework",
        field="framework",
        read=_name,
        metavar="NAME",
        help="of the catalog: torch, megatron, hf-trainer, …",
    ),
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Declares them all."""
    group = parser.add_argument_group("the question (each flag takes a list: --nodes 2,4,8)")
    for flag in FLAGS:
        alone: dict[str, Any] = {"nargs": "?", "const": "yes"} if flag.is_switch else {}
        group.add_argument(
            flag.name, dest=f"property_{flag.field}", metavar=flag.metavar, help=flag.help, **alone
        )


def read_properties(options: argparse.Namespace) -> dict[str, Sequence[Any]]:
    """What was asked. Raises InputError."""
    from broadgauge.specs.errors import InputError

    properties: dict[str, Sequence[Any]] = {}
    for flag in FLAGS:
        text = getattr(options, f"property_{flag.field}")
        if text is None:
            continue
        words = [word.strip() for word in text.split(",")]
        if not all(words):
            raise InputError(f"{flag.name} {text}: an empty item", hint=f"{flag.name} a,b,c")
        properties[flag.field] = list(dict.fromkeys(flag.read(flag.name, word) for word in words))
    last = ("network", "nodes")  # rows of the table go by network, then by size
    return {
        **{field: values for field, values in properties.items() if field not in last},
        **{field: properties[field] for field in last if field in properties},
    }
