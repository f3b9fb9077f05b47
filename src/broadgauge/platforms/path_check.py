"""Did a trial take the path that its case names? Asked before its ranks start and after it."""

from collections.abc import Sequence

from broadgauge.messages.codec import DecodeError
from broadgauge.messages.rank import (
    BLOCK,
    Block,
    CollectiveBlock,
    StepCollective,
    StepsBlock,
    TrainSummary,
)
from broadgauge.messages.vocabulary import StepMode
from broadgauge.platforms.gpu_watch import GpuWatch, gpu_handle, open_nvml
from broadgauge.platforms.nccl_connections import Connection, connections_of
from broadgauge.platforms.nccl_log import reading_of_ranks
from broadgauge.platforms.nvlink import are_joined
from broadgauge.platforms.paths import (
    PCIE_FIX,
    PCIE_REFUSAL,
    NvlinkUse,
    mismatch,
    path_facts,
)
from broadgauge.platforms.supervised import CheckResult, CheckTrial, TrialEvents
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.launching import RankMessage
from broadgauge.specs.records.record import ErrorKind, PathFacts, Phase, TrialError

GLOO_PATH = "Gloo sends over TCP, inside one node over the loopback interface"


def has_path(case: Case) -> bool:
    """Do the ranks of this case send each other anything inside one node?"""
    return case.nodes == 1 and case.world_size > 1


def refuse_impossible_path(case: Case, gpus: Sequence[str]) -> None:
    """Can this path be had on these GPUs? Raises LaunchError, with the fix, where it can't."""
    if case.path is None or case.path.path != "pcie" or case.backend != "nccl":
        return
    if joined_by_nvlink(gpus):
        raise LaunchError(
            f"{case.label}: {PCIE_REFUSAL}",
            hint=PCIE_FIX,
            error=TrialError(
                kind=ErrorKind.REFUSED,
                message=f"{PCIE_REFUSAL} (hint: {PCIE_FIX})",
                phase=Phase.RENDEZVOUS,
            ),
        )


def joined_by_nvlink(gpus: Sequence[str]) -> bool | None:
    """Does NVLink join any two of these GPUs? None: NVML does not say."""
    nvml = open_nvml()
    if nvml is None:
        return None
    handles = [gpu_handle(nvml, gpu) for gpu in gpus]
    return are_joined(nvml, [handle for handle in handles if handle is not None])


def path_check(case: Case, stem: str) -> CheckTrial | None:
    """What must hold of a good trial inside one node? None: nothing is sent there."""
    if not has_path(case):
        return None

    def check(events: TrialEvents, watch: GpuWatch) -> CheckResult:
        facts, error = check_path(
            case,
            stem,
            watch.nvlink_bytes(),
            events.messages,
            is_joined=joined_by_nvlink(watch.gpus),
        )
        return CheckResult(error=error, path=facts)

    return check


def check_path(
    case: Case,
    stem: str,
    nvlink_bytes: Sequence[int | None],
    messages: Sequence[Sequence[RankMessage]],
    *,
    is_joined: bool | None = None,
) -> tuple[PathFacts, TrialError | None]:
    """Which path was taken, and is it another one than the case names?

    `nvlink_bytes` by GPU, None without counters; `messages`: by rank, what was said in the trial.
    """
    if case.backend == "gloo":
        facts = PathFacts(used="sockets", evidence=(GLOO_PATH,))
    else:
        use = nvlink_use(nvlink_bytes, least_sent_bytes(messages, case.world_size))
        facts = path_facts(read_logs(stem, case.world_size), use, are_joined=is_joined)
    contradiction = None if case.path is None else mismatch(case.path.path, facts)
    if contradiction is None:
        return facts, None
    error = TrialError(
        kind=ErrorKind.REFUSED,
        message=contradiction,
        phase=Phase.MEASURE,
        last_lines=facts.evidence,
    )
    return facts, error


def read_logs(log_stem: str, num_ranks: int) -> tuple[Connection, ...]:
    """The connections of all ranks; a file that can't be read has none."""
    return connections_of(reading_of_ranks(log_stem, range(num_ranks)))


def nvlink_use(counted: Sequence[int | None], least_bytes: int | None) -> NvlinkUse | None:
    """None where a GPU has no counters: then only the log speaks."""
    known = [count for count in counted if count is not None]
    if not known or len(known) < len(counted):
        return None
    return NvlinkUse(counted_bytes=sum(known), least_bytes=least_bytes)


def least_sent_bytes(messages: Sequence[Sequence[RankMessage]], num_ranks: int) -> int | None:
    """How much must the ranks have sent each other in the measured part? None: not known.

    A collective of size S, timed by every rank, sends at least (n − 1) S over all ranks
    (all_reduce twice that); a message between two ranks, timed by these alone, sends S. Source:
    merging/definitions.py.
    """
    sent = 0.0
    for rank, said in enumerate(messages):
        blocks = [block for message in said if (block := _block(message)) is not None]
        a_step = sum(
            _sent_in_step(block, num_ranks) for block in blocks if isinstance(block, TrainSummary)
        )
        for block in blocks:
            match block:
                case CollectiveBlock(from_rank=None):
                    share = (num_ranks - 1) / num_ranks
                    sent += block.size_bytes * len(block.seconds) * share
                case CollectiveBlock(from_rank=sender) if sender == rank:
                    sent += block.size_bytes * len(block.seconds)
                case StepsBlock(mode=StepMode.TIMED):
                    sent += a_step * len(block.seconds)
                case _:
                    pass
    return round(sent) or None


def _sent_in_step(summary: TrainSummary, num_ranks: int) -> float:
    """Each rank's share of (n − 1) S, of the n ranks that take part."""
    whole = StepCollective(op="all_reduce", size_bytes=summary.gradient_bytes)
    sizes = [
        (num_ranks if each.group is None else each.group.size, each.size_bytes * each.count)
        for each in summary.collectives or (whole,)
    ]
    return sum(size_bytes * (members - 1) / members for members, size_bytes in sizes)


def _block(message: RankMessage) -> Block | None:
    """A measured block; what the merger can't read either is nothing here."""
    if message.get("type") != "block":
        return None
    try:
        return BLOCK(message)
    except DecodeError:
        return None
