"""Does a RoCE connection fail since its ends took the wrong address (GID) of an adapter?"""

import re
from collections.abc import Iterator, Sequence

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.conclusions.port_events import COMPLETION_RULE
from broadgauge.doctor.log.facts import ListedGid, LogReading, Seen
from broadgauge.doctor.log.speakers import named, who
from broadgauge.specs.records.record import Confidence, Finding, Severity

_ENDS = re.compile(
    r"localGid (?P<here>[0-9a-fA-F:.]{2,60}) remoteGids? ?(?P<there>[0-9a-fA-F:.]{2,60})"
)
"""Source: NVIDIA/nccl src/transport/net_ib.cc (2.20 and later), ncclIbTest."""
_LINK_LOCAL = "fe80:"
_INDEX = "NCCL_IB_GID_INDEX"
_CONNECTING = frozenset({"ib-modify-qp", "ib-modify-qp-older"})


def gids_of_two_kinds(reading: LogReading) -> Iterator[Conclusion]:
    """One end link-local (fe80::, in no subnet), the other of a subnet: no route joins them."""
    for seen in reading.seen:
        if seen.rule.id != COMPLETION_RULE or seen.fields["status"] != "12":
            continue
        for place, text in seen.lines:
            ends = _ENDS.search(text)
            if ends is None or _is_link_local(ends["here"]) == _is_link_local(ends["there"]):
                continue
            yield Conclusion(
                place=place,
                finding=Finding(
                    rule="gids-of-two-kinds",
                    severity=Severity.ERROR,
                    symptom=(
                        f"a RoCE connection joins {ends['here']} and {ends['there']}, and its "
                        "packets are lost (status 12)"
                    ),
                    evidence=quoted([(place, text)]),
                    cause=(
                        "one end took a link-local GID and the other one of a subnet: the index "
                        "means another entry in each host's or pod's table"
                    ),
                    fix=(
                        "unset NCCL_IB_GID_INDEX (NCCL 2.21 and later choose by address and RoCE "
                        "version), or `show_gids` on both and an index that is the same kind; "
                        "NCCL_IB_ADDR_RANGE names the subnet"
                    ),
                    confidence=Confidence.LIKELY,
                ),
                explains=frozenset({COMPLETION_RULE}),
                is_cause=True,
            )
            return


def gid_is_link_local(reading: LogReading) -> Iterator[Conclusion]:
    """Connections time out, and the index that was asked for is a link-local address of an adapter
    that NCCL uses, in a list."""
    said = [s for s in reading.seen if s.rule.id in _CONNECTING and _has_timed_out(s)]
    asked_by_all = {p.variables.get(_INDEX) for p in reading.processes.values()} - {None}
    used = {name.split(":")[0] for p in reading.processes.values() for name in p.adapters}
    gids = [
        g
        for g in reading.gids
        if str(g.entry) in asked_by_all
        and g.address.is_link_local
        and (g.device is None or not used or g.device in used)
    ]
    if not said or not gids:
        return
    first = gids[0]
    speakers = {speaker for seen in said for speaker in seen.speakers}
    better = [
        g
        for g in reading.gids
        if g.is_roce_v2 and g.address.ipv4_mapped and g.device == first.device
    ]
    yield Conclusion(
        place=said[0].lines[0][0],
        finding=Finding(
            rule="gid-link-local",
            severity=Severity.ERROR,
            symptom=(
                f"RDMA connections of {who(reading, speakers)} on "
                f"{named(each.host for each in speakers)} time out: "
                f"{_INDEX}={first.entry} is a link-local address"
                + ("" if first.device is None else f" of {first.device}")
            ),
            evidence=(
                *quoted(said[0].lines[:1]),
                *quoted((g.place, _gid_words(g)) for g in (first, *better[:1])),
            ),
            cause=(
                f"GID {first.entry} ({first.address}) is link-local: no route leads from it to "
                "another network's nodes"
            ),
            fix=_other_index(better),
            confidence=Confidence.LIKELY,
        ),
        explains=_CONNECTING,
        is_cause=True,
    )


def _has_timed_out(seen: Seen) -> bool:
    return seen.fields.get("code") == "110" or "timed out" in seen.fields.get("reason", "")


def _other_index(better: Sequence[ListedGid]) -> str:
    chosen = (
        f"NCCL_IB_GID_INDEX={better[0].entry}, the RoCE v2 address {better[0].address.ipv4_mapped},"
        if better
        else "the index of a RoCE v2 address with IPv4 in it (`show_gids`),"
    )
    return (
        f"{chosen} where the table is the same on every node; or unset it: NCCL 2.21 and "
        "later choose by address and RoCE version"
    )


def _gid_words(gid: ListedGid) -> str:
    address = gid.address.ipv4_mapped or gid.address
    return f"GID {gid.entry}: {address}{', RoCE v2' if gid.is_roce_v2 else ''}"


def _is_link_local(gid: str) -> bool:
    return gid.casefold().startswith(_LINK_LOCAL)
