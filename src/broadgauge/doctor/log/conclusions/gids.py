"""Did two ends of a RoCE connection take addresses (GIDs) of different kinds?"""

import re
from collections.abc import Iterator

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.conclusions.port_events import COMPLETION_RULE
from broadgauge.doctor.log.facts import LogReading
from broadgauge.specs.record import Confidence, Finding, Severity

_ENDS = re.compile(
    r"localGid (?P<here>[0-9a-fA-F:.]{2,60}) remoteGids? ?(?P<there>[0-9a-fA-F:.]{2,60})"
)
"""Source: NVIDIA/nccl src/transport/net_ib.cc (2.20 and later), ncclIbTest."""
_LINK_LOCAL = "fe80:"


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


def _is_link_local(gid: str) -> bool:
    return gid.casefold().startswith(_LINK_LOCAL)
