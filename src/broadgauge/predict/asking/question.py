"""Can this training be? What is wrong with a `TrainingCase`, in one message with a hint."""

import math
from collections.abc import Iterator
from typing import get_args

from broadgauge.predict.case import Precision, TrainingCase
from broadgauge.predict.facts.splits import SPLIT_RULES, Fault, SplitRule, divisors
from broadgauge.specs.errors import InputError

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
MOST_GPUS = 1_000_000
MOST_SEQUENCES = 1_000_000_000
DEGREES = ("data_parallel", "tensor_parallel", "pipeline_parallel", "context_parallel")
COUNTS = (*DEGREES, "virtual_stages", "expert_parallel", "nodes", "gpus_per_node", "seq_len")


def check(case: TrainingCase) -> None:
    """Raises InputError with the first thing that is wrong with it."""
    fault = fault_of(case)
    if fault is not None:
        raise InputError(fault[0], hint=fault[1])


def fault_of(case: TrainingCase) -> Fault | None:
    """The first thing that is wrong; None: it can be asked. Raises InputError: unknown GPU."""
    return next((fault for rule in _RULES for fault in rule(case)), None)


def _numbers(case: TrainingCase) -> Iterator[Fault]:
    for name in COUNTS:
        value = getattr(case, name)
        if value < 1:
            yield f"{_words(name)} is {value}", "it is 1 or more"
    for name in ("micro_batch", "global_batch"):
        value = getattr(case, name)
        if not (math.isfinite(value) and value > 0):
            yield f"{_words(name)} is {value:g} sequences", "it is more than 0"
        elif value > MOST_SEQUENCES:
            yield f"{_words(name)} is {value:g} sequences", f"at most {MOST_SEQUENCES:,}"
    if case.micro_batch % 1:
        yield f"micro batch is {case.micro_batch:g} sequences", "a whole number of them, 1 or more"
    if case.zero_stage is not None and not 0 <= case.zero_stage <= 3:
        yield f"ZeRO has no stage {case.zero_stage}", "0, 1, 2 or 3"
    if case.gpus > MOST_GPUS:
        yield f"{case.gpus:,} GPUs are more than the {MOST_GPUS:,} this was made for", None


def _degrees(case: TrainingCase) -> Iterator[Fault]:
    product = math.prod(getattr(case, name) for name in DEGREES)
    if product == case.gpus:
        return
    inner = product // case.data_parallel
    parts = " × ".join(f"{_words(n)} {getattr(case, n)}" for n in DEGREES if getattr(case, n) > 1)
    message = (
        f"{parts or 'no parallelism'} is {product} GPUs, and {_machines(case)} are {case.gpus}"
    )
    if case.gpus % inner == 0:
        yield message, f"data parallel {case.gpus // inner} makes them equal"
    else:
        yield message, f"tensor × pipeline × context parallel ({inner}) must divide {case.gpus}"


def _sequence_parallel(case: TrainingCase) -> Iterator[Fault]:
    if case.sequence_parallel and case.tensor_parallel == 1:
        yield (
            "sequence parallelism splits what tensor parallelism leaves whole, and there is none",
            "tensor parallel 2 or more, or without it",
        )


def _experts(case: TrainingCase) -> Iterator[Fault]:
    experts, degree = case.model.num_experts, case.expert_parallel
    if degree == 1:
        return
    if experts == 1:
        yield f"{case.model.name} has no experts to spread over {degree} ranks", None
    elif experts % degree:
        yield (
            f"{experts} experts of {case.model.name} do not divide by expert parallel {degree}",
            f"one of {divisors(experts)}",
        )
    elif (ranks := case.data_parallel * case.context_parallel) % degree:
        yield (
            f"expert parallel {degree} spreads experts over the data-parallel ranks, and there are "
            f"{ranks}",
            f"one of {divisors(ranks)}",
        )


def _batches(case: TrainingCase) -> Iterator[Fault]:
    if case.virtual_stages > 1 and case.micro_batches % case.pipeline_parallel:
        yield (
            f"{case.micro_batches:g} micro-batches do not divide by {case.pipeline_parallel} "
            "stages, as an interleaved schedule needs",
            "another global batch, or no virtual stages",
        )
    least = case.data_parallel * case.micro_batch
    pieces = case.global_batch / least
    if pieces < 1 - 1e-9:
        yield (
            f"a global batch of {case.global_batch:g} sequences is less than one micro-batch of "
            f"{case.micro_batch:g} on each of {case.data_parallel} data-parallel ranks",
            f"at least {least:g}",
        )
    elif abs(pieces - round(pieces)) > 1e-6 * pieces:
        below = math.floor(pieces) * least
        yield (
            f"a global batch of {case.global_batch:g} sequences is no whole number of "
            f"micro-batches of {case.micro_batch:g} on {case.data_parallel} data-parallel ranks",
            f"{below:g} or {below + least:g}",
        )


def _network(case: TrainingCase) -> Iterator[Fault]:
    fabric = case.fabric
    for rate, unit in (
        (fabric.node_gbps, "Gbit/s"),
        (fabric.measured_node_gbyte_per_s, "GB/s"),
    ):
        if rate is not None and not rate > 0:
            yield f"the network's bandwidth is {rate:g} {unit}", "a rate above zero: `roce-400g`"
    if case.nodes > 1 and fabric.transport == "none":
        yield (
            f"{case.nodes} nodes need a network between them",
            "--network roce-400g, for example; `broadgauge catalog list networks` prints those "
            "known",
        )


def _weights(case: TrainingCase) -> Iterator[Fault]:
    if case.quantized_base and not case.lora:
        yield "weights of 4 bits are frozen: nothing would be trained", "--lora beside --int4-base"


def _precision(case: TrainingCase) -> Iterator[Fault]:
    gpu = case.gpu_entry
    known = [name for name in PRECISIONS if gpu.peak_flops(name) is not None]
    if case.precision not in known and case.precision != "tf32":
        yield f"{gpu.name} has no {case.precision} arithmetic", f"it has {', '.join(known)}"


_RULES: tuple[SplitRule, ...] = (
    _numbers,
    *SPLIT_RULES,
    _sequence_parallel,
    _experts,
    _degrees,
    _batches,
    _network,
    _weights,
    _precision,
)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _machines(case: TrainingCase) -> str:
    nodes = "1 node" if case.nodes == 1 else f"{case.nodes} nodes"
    return f"{nodes} of {case.gpus_per_node}"
