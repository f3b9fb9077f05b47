"""Which ranks did the others wait for, by what torch wrote when a collective's time was up?"""

import re
from collections.abc import Iterator, Mapping

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, Seen, Way
from broadgauge.doctor.log.job import is_of_network, largest
from broadgauge.doctor.log.speakers import rank_words
from broadgauge.specs.record import Confidence, Finding, Severity
from broadgauge.wording.amounts import show_time

_DUMP = "torch-dump-signal"
_REFUSED = "iommu-fault"
"""The rule of the kernel's line that says why: the IOMMU refused what a peer sent."""
_TIMEOUT = "torch-watchdog-timeout"
PREPARING = "data-preparing"
_OF_TIMEOUT = frozenset({_TIMEOUT, "torch-taken-down", "torch-watchdog-stuck"})
_BY_PAIRS = ("SEND", "RECV", "RECVANYSOURCE", "COALESCED")
"""What two ranks do in turn: one waits to send, the other one to receive, under one number. Of
ALLTOALL each rank may have another number of elements. Source: pytorch/pytorch
torch/csrc/distributed/c10d/Work.cpp, opTypeToString."""
_GROUP = re.compile(r"\[PG (?:ID )?(\d+)")
_BAR = re.compile(
    r"((?:Generating|Map|Filter|Tokeniz|Running tokenizer|Saving the dataset|Packing|Grouping|"
    r"Concatenating|Preprocess|Preparing|Flattening|Casting)[\w ()=/-]{0,60}?)\s*:"
)
"""What progress bars of preparing call themselves. Source: huggingface/datasets src/datasets
(arrow_dataset.py, builder.py), huggingface/trl and transformers, their `desc=`."""


def rank_behind(reading: LogReading) -> Iterator[Conclusion]:
    """Ranks that issued fewer collectives than others, of those that said how many.

    Source: pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp: each rank that
    gets the signal writes its last enqueued and its last completed work of the default group.
    """
    by_issued: dict[int, set[int]] = {}
    lines = []
    for seen in sorted(reading.seen, key=lambda each: int(each.fields.get("enqueued", 0))):
        if seen.rule.id == _DUMP and seen.ranks:
            by_issued.setdefault(int(seen.fields["enqueued"]), set()).update(seen.ranks)
            lines.extend(seen.lines[:1])
    if len(by_issued) < 2:
        return
    fewest, *_, most = sorted(by_issued)
    behind, others = by_issued[fewest], set().union(*by_issued.values()) - by_issued[fewest]
    verb = "has" if len(behind) == 1 else "have"
    yield Conclusion(
        place=lines[0][0],
        finding=Finding(
            rule="rank-behind",
            severity=Severity.ERROR,
            symptom=(
                f"{rank_words(behind)} {verb} issued {fewest} collectives, {rank_words(others)} up "
                f"to {most}: these wait"
            ),
            evidence=quoted(lines),
            cause=(
                "what is behind hangs or is slow in something else (data, storage, a lock, a long "
                "step of its own), or took another way through the script"
            ),
            fix=(
                f"read the last lines of {rank_words(behind)} and `py-spy dump` its process; "
                "compare its batches and branches with those of the others"
            ),
            confidence=Confidence.LIKELY,
        ),
        explains=frozenset({_DUMP}),
    )


def nobody_through(reading: LogReading) -> Iterator[Conclusion]:
    """All ranks wait in one and the same collective: nobody is missing, the bytes don't arrive."""
    communicator = largest(reading)
    if communicator is None or not communicator.num_ranks:
        return
    if any(seen.rule.id == _REFUSED for seen in reading.seen):
        return
    by_collective: dict[tuple[str, str], list[Seen]] = {}
    for seen in reading.seen:
        if seen.rule.id == _TIMEOUT:
            key = (seen.fields.get("sequence", ""), seen.fields.get("op", ""))
            by_collective.setdefault(key, []).append(seen)
    for (sequence, op), several in by_collective.items():
        ranks = {rank for seen in several for rank in seen.ranks}
        if ranks == set(range(communicator.num_ranks)) and len(
            {*map(_what_of, several)}
        ) == 1 < len(ranks):
            what = f"{op} number {sequence}"
            yield _nobody_through(communicator, several, what, is_first=sequence == "1")


def different_collectives(reading: LogReading) -> Iterator[Conclusion]:
    """Ranks that wait in different collectives under one number: they will never meet.

    Numbers are of a process group, and lines without one are of the default group. Source:
    pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, logPrefix.
    """
    by_number: dict[tuple[str, str], list[Seen]] = {}
    for seen in reading.seen:
        if seen.rule.id == _TIMEOUT and seen.ranks and seen.lines:
            group = _GROUP.search(seen.lines[0][1])
            key = (group[1] if group else "", seen.fields["sequence"])
            by_number.setdefault(key, []).append(seen)
    for (_, number), several in by_number.items():
        told = {_what_of(seen): seen for seen in several}
        ranks = [rank for seen in told.values() for rank in seen.ranks]
        is_by_pairs = any(seen.fields["op"] in _BY_PAIRS for seen in several)
        if len(told) > 1 and len(ranks) == len(set(ranks)) and not is_by_pairs:
            yield _different(told, number)
            return


def _what_of(seen: Seen) -> str:
    elements = None if seen.fields["op"].startswith("ALLTOALL") else seen.fields.get("elements")
    return seen.fields["op"] + (f" of {int(elements):,} elements" if elements else "")


def _different(told: Mapping[str, Seen], number: str) -> Conclusion:
    lines = sorted(seen.lines[0] for seen in told.values())
    waits = "; ".join(f"{rank_words(seen.ranks)} in {what}" for what, seen in told.items())
    return Conclusion(
        place=lines[0][0],
        finding=Finding(
            rule="ranks-in-different-collectives",
            severity=Severity.ERROR,
            symptom=f"ranks wait in different collectives, number {number} of each: {waits}",
            evidence=quoted(lines),
            cause=(
                "the ranks took different ways through the script: a branch that asks for the "
                "rank, a batch more or less, a parameter that not all ranks use"
            ),
            fix=(
                "TORCH_DISTRIBUTED_DEBUG=DETAIL stops at the first call that differs; look at "
                "branches around collectives, saving, logging and evaluation"
            ),
            confidence=Confidence.LIKELY,
        ),
        explains=_OF_TIMEOUT,
    )


def waits_for_preparing(reading: LogReading) -> Iterator[Conclusion]:
    """Ranks that waited in a barrier until their time was up, while data was being prepared."""
    bars = [seen for seen in reading.seen if seen.rule.id == PREPARING]
    waiting = [seen for seen in reading.seen if seen.rule.id == _TIMEOUT]
    barriers = [seen for seen in waiting if seen.fields.get("elements") == "1"]
    named = [match[1] for seen in bars for _, text in seen.lines if (match := _BAR.search(text))]
    if not named or not barriers or len(barriers) < len(waiting):
        return
    lines = [*bars[0].lines[-1:], *barriers[0].lines[:1]]
    limit_ms = int(barriers[0].fields["limit_ms"])
    ranks = {rank for seen in barriers for rank in seen.ranks}
    who = rank_words(ranks) if ranks else "ranks"
    yield Conclusion(
        place=lines[-1][0],
        finding=Finding(
            rule="waits-for-preparing",
            severity=Severity.ERROR,
            symptom=(
                f"{who} waited {show_time(limit_ms / 1000)} in a barrier while another rank "
                f"prepared data (`{named[-1]}` ran), and gave up"
            ),
            evidence=quoted(lines),
            cause=(
                "one rank prepares the data set for all, which takes longer than the process "
                "group's time limit; the network is not to blame"
            ),
            fix=(
                "prepare (tokenise, generate) the data set once before the job, so that ranks find "
                "it in the cache; or raise `timeout=` of init_process_group (ddp_timeout in "
                "transformers, InitProcessGroupKwargs in accelerate)"
            ),
            confidence=Confidence.LIKELY,
        ),
        explains=_OF_TIMEOUT,
    )


def _nobody_through(
    communicator: CommunicatorFacts, several: list[Seen], what: str, *, is_first: bool
) -> Conclusion:
    lines = sorted(line for seen in several for line in seen.lines)
    way, cause, fix = _stalled(communicator)
    first = ", the first one of the job" if is_first else ""
    return Conclusion(
        place=lines[0][0],
        finding=Finding(
            rule="collective-stalled",
            severity=Severity.ERROR,
            symptom=(
                f"all {communicator.num_ranks} ranks wait in {what}{first}, and none got through"
                f"{way}: nobody is missing, the bytes do not arrive"
            ),
            evidence=quoted(lines),
            cause=cause,
            fix=fix,
            confidence=Confidence.LIKELY if is_first else Confidence.POSSIBLE,
        ),
        explains=_OF_TIMEOUT,
    )


def _stalled(communicator: CommunicatorFacts) -> tuple[str, str, str]:
    """By which way, why, and what helps."""
    ways = {way for of_pair in communicator.paths.values() for way in of_pair}
    if ways and ways <= {Way.P2P, Way.NVLS}:
        return (
            " over P2P",
            "P2P between the GPUs is allowed and does not work: PCIe's ACS or an IOMMU redirects "
            "it, or a link or GPU has failed",
            "test with NCCL_P2P_DISABLE=1: does it run? Then switch ACS off on the PCIe bridges "
            "(BIOS or setpci) and the IOMMU to passthrough (iommu=pt); `nvidia-smi topo -p2p r`",
        )
    if Way.SOCKETS in ways and not ways & {Way.NETWORK, Way.GDRDMA}:
        return (
            " over TCP sockets",
            "connections are made and data does not pass: an MTU that is larger than the way "
            "carries (jumbo frames, an overlay network), a firewall that drops what goes on, or an "
            "interface that leads elsewhere",
            "`ping -M do -s 8972` (or 1472 at an MTU of 1500) and `iperf3` between the interfaces "
            "that NCCL names; the same MTU on all, or a smaller one; NCCL_SOCKET_IFNAME= the one "
            "that joins the nodes",
        )
    if any(map(is_of_network, ways)):
        return (
            " over the network",
            "connections are made and data does not pass: a firewall, an MTU that differs, a bad "
            "GID or port, or adapters without a peer on the other side",
            "`ib_write_bw` or `iperf3` between two of the nodes with the same adapter and size; "
            "the same MTU, GID index and adapters on all",
        )
    return (
        "",
        "the collective hangs on all ranks: a GPU or link that has failed, or a deadlock of "
        "several communicators",
        "`dmesg | grep Xid`; NCCL_DEBUG=INFO shows the way that the bytes take",
    )
