"""Made-up trials for the merger: what ranks would say and supervisors would count."""

from collections.abc import Sequence

from broadgauge.messages.codec import encode
from broadgauge.messages.rank import Block, CollectiveBlock, StepsBlock, TrainSummary
from broadgauge.messages.vocabulary import StepMode
from broadgauge.specs.case import Case, Device
from broadgauge.specs.launching import Mark, NodeCounters, TrialOutcome
from broadgauge.specs.networks.network import Network
from broadgauge.specs.records.record import Status
from broadgauge.specs.workloads.workload import Workload


def make_case(
    workload: Workload,
    *,
    nodes: int = 2,
    ranks_per_node: int = 1,
    rate_gbps: float | None = 1.0,
    device: Device = "cpu",
) -> Case:
    network = Network(name="made-up", rate_gbps=rate_gbps) if nodes > 1 else None
    return Case(
        workload=workload,
        network=network,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        device=device,
        backend="nccl" if device == "cuda" else "gloo",
        environment={},
    )


def counters(tx_bytes: int | None, rx_bytes: int | None, cpu_s: float = 0.0) -> NodeCounters:
    return NodeCounters(
        tx_bytes=tx_bytes,
        rx_bytes=rx_bytes,
        drops_count=None if tx_bytes is None else 0,
        retransmits_count=None if tx_bytes is None else 0,
        cores_count=2,
        cpu_user_s=cpu_s,
        cpu_system_s=0.0,
        cpu_softirq_s=0.0,
    )


def between(label: str, before: Sequence[NodeCounters], after: Sequence[NodeCounters]) -> tuple:
    """The two marks around a block, one second apart."""
    return (
        Mark(label=f"{label}:begin", time_s=10.0, nodes=tuple(before)),
        Mark(label=f"{label}:end", time_s=11.0, nodes=tuple(after)),
    )


def outcome(messages: Sequence[Sequence[Block]], marks: Sequence[Mark] = ()) -> TrialOutcome:
    return TrialOutcome(
        status=Status.OK,
        started_unix_s=0.0,
        ended_unix_s=1.0,
        messages=tuple(tuple(encode(message) for message in rank) for rank in messages),
        marks=tuple(marks),
    )


def collective(
    seconds: Sequence[float],
    *,
    op: str = "all_reduce",
    size_bytes: int = 1_000_000,
    is_correct: bool | None = True,
) -> CollectiveBlock:
    return CollectiveBlock(
        trial_id="t",
        label=op if op == "barrier" else f"{op}/float32/{size_bytes}",
        op=op,
        dtype="float32",
        size_bytes=size_bytes,
        seconds=tuple(seconds),
        is_correct=is_correct,
    )


def message(
    pair: tuple[int, int],
    rank: int,
    seconds: Sequence[float],
    *,
    size_bytes: int = 1_000_000,
    is_correct: bool | None = True,
) -> CollectiveBlock:
    """What a rank says of a message between two: the sender its times, the receiver if it came."""
    return CollectiveBlock(
        trial_id="t",
        label=f"send_recv/float32/{size_bytes}/{pair[0]}-{pair[1]}",
        op="send_recv",
        dtype="float32",
        size_bytes=size_bytes,
        seconds=tuple(seconds) if rank == pair[0] else (),
        is_correct=is_correct if rank == pair[1] else None,
        from_rank=pair[0],
        to_rank=pair[1],
    )


def steps(label: str, seconds: Sequence[float], losses: Sequence[float | None]) -> StepsBlock:
    return StepsBlock(
        trial_id="t",
        label=label,
        mode=StepMode.TIMED if label.startswith("on") else StepMode.COMMUNICATION_OFF,
        seconds=tuple(seconds),
        losses=tuple(losses),
    )


def summary(checksum: float = 1.0, peak_memory_bytes: int = 100) -> TrainSummary:
    return TrainSummary(
        trial_id="t",
        parameters=250_000,
        tokens_per_step=256,
        sequences_per_step=2,
        gradient_bytes=1_000_000,
        flops_per_step=1e9,
        peak_memory_bytes=peak_memory_bytes,
        data="made up",
        parameter_checksum=checksum,
    )
