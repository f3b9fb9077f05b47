"""In which collectives do ranks wait, by what torch wrote when their time was up? In one and the
same, so that nobody is missing; or in different ones, which never meet.

Numbers of collectives are of a process group, and lines without one are of the default group.
"""

from collections.abc import Iterator, Mapping, Sequence

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, Seen, Way
from broadgauge.doctor.log.job import is_of_network, largest
from broadgauge.doctor.log.rule import PROCESS_GROUP
from broadgauge.doctor.log.speakers import rank_words
from broadgauge.specs.records.record import Confidence, Finding, Severity

TIMEOUT = "torch-watchdog-timeout"
OF_TIMEOUT = frozenset({TIMEOUT, "torch-taken-down", "torch-watchdog-stuck"})
_REFUSED = "iommu-fault"
"""The rule of the kernel's line that says why: the IOMMU refused what a peer sent."""
_DEFAULT_GROUP = "0"
_MOST_APART = 100
"""Numbers of collectives that are further apart are of different incidents."""
_BY_PAIRS = ("SEND", "RECV", "RECVANYSOURCE", "COALESCED")
"""What two ranks do in turn: one waits to send, the other one to receive, under one number. Of
ALLTOALL each rank may have another number of elements. Source: pytorch/pytorch
torch/csrc/distributed/c10d/Work.cpp, opTypeToString."""


def nobody_through(reading: LogReading) -> Iterator[Conclusion]:
    """All ranks wait in one and the same collective: nobody is missing, the bytes don't arrive."""
    communicator = largest(reading)
    if communicator is None or not communicator.num_ranks:
        return
    if any(seen.rule.id == _REFUSED for seen in reading.seen):
        return
    for (group, number), several in _by_number(reading).items():
        ranks = {rank for seen in several for rank in seen.ranks}
        is_all = ranks == set(range(communicator.num_ranks))
        if is_all and len(ranks) > 1 and len({*map(_what_of, several)}) == 1:
            what = f"{several[0].fields['op']} number {number}"
            is_first = number == "1" and group == _DEFAULT_GROUP
            yield _nobody_through(communicator, several, what, is_first=is_first)


def different_collectives(reading: LogReading) -> Iterator[Conclusion]:
    """Ranks that wait in different collectives under one number: they will never meet."""
    for (_, number), several in _by_number(reading).items():
        told = {_what_of(seen): seen for seen in several}
        ranks = [rank for seen in told.values() for rank in seen.ranks]
        is_by_pairs = any(seen.fields["op"] in _BY_PAIRS for seen in several)
        if len(told) > 1 and len(ranks) == len(set(ranks)) and not is_by_pairs:
            yield _different(told, number)
            return


def ranks_out_of_step(reading: LogReading) -> Iterator[Conclusion]:
    """Ranks of one group that wait in collectives of different numbers, one after the other."""
    by_group: dict[str, dict[int, list[Seen]]] = {}
    for (group, number), several in _by_number(reading).items():
        by_group.setdefault(group, {})[int(number)] = several
    for waits in by_group.values():
        ranks = [rank for each in waits.values() for rank in {r for s in each for r in s.ranks}]
        ops = {seen.fields["op"] for each in waits.values() for seen in each}
        is_near = max(waits) - min(waits) <= _MOST_APART
        if len(waits) > 1 and is_near and len(ranks) == len(set(ranks)) and not ops & {*_BY_PAIRS}:
            yield _out_of_step(waits)
            return


def _out_of_step(waits: Mapping[int, Sequence[Seen]]) -> Conclusion:
    lines = sorted(each[0].lines[0] for each in waits.values())
    told = "; ".join(
        f"{rank_words({r for seen in each for r in seen.ranks})} in number {number}, "
        f"{_what_of(each[0])}"
        for number, each in sorted(waits.items())
    )
    return Conclusion(
        place=lines[0][0],
        finding=Finding(
            rule="ranks-out-of-step",
            severity=Severity.ERROR,
            symptom=f"ranks are out of step, each waits in another collective: {told}",
            evidence=quoted(lines),
            cause=(
                "they have issued different numbers of collectives: uneven numbers of batches "
                "(one rank has one more, or is in its validation already), or a branch that asks "
                "for the rank"
            ),
            fix=(
                "the same number of batches on all ranks: `drop_last=True`, a sampler that pads, "
                "the same number of steps of a stream, or `Join` of torch.distributed.algorithms; "
                "TORCH_DISTRIBUTED_DEBUG=DETAIL stops at the first call that differs"
            ),
            confidence=Confidence.LIKELY,
        ),
        explains=OF_TIMEOUT,
        is_cause=True,
    )


def _by_number(reading: LogReading) -> Mapping[tuple[str, str], list[Seen]]:
    """Time-outs by (process group, number of the collective)."""
    found: dict[tuple[str, str], list[Seen]] = {}
    for seen in reading.seen:
        if seen.rule.id == TIMEOUT and seen.ranks and seen.lines:
            key = (seen.fields.get(PROCESS_GROUP, _DEFAULT_GROUP), seen.fields["sequence"])
            found.setdefault(key, []).append(seen)
    return found


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
        explains=OF_TIMEOUT,
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
        explains=OF_TIMEOUT,
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
