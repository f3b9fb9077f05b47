"""Did transfers fail on an adapter of the other kind, an Ethernet port beside InfiniBand ones?"""

import re
from collections.abc import Iterator, Mapping

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.conclusions.port_events import COMPLETION_RULE
from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.speakers import named
from broadgauge.specs.records.record import Confidence, Finding, Severity

_ADAPTER = re.compile(r"\bhca (?P<name>\S+)")
"""Source: NVIDIA/nccl src/transport/net_ib.cc (2.20 and later), ncclIbTest."""
_LOST = "12"
_INFINIBAND, _ROCE = "IB", "RoCE"


def lost_beside_infiniband(reading: LogReading) -> Iterator[Conclusion]:
    """NCCL takes every port that is up: management's Ethernet, too, where nobody excludes it."""
    links: dict[str, str] = {}
    for process in reading.processes.values():
        for name, adapter in process.adapters.items():
            if links.setdefault(name.split(":")[0], adapter.link) != adapter.link:
                return  # one name is of different kinds on different hosts
    ethernet = {name for name, link in links.items() if link.startswith(_ROCE)}
    infiniband = {name for name, link in links.items() if link.startswith(_INFINIBAND)}
    if not ethernet or len(ethernet) > len(infiniband):
        return
    for seen in reading.seen:
        if seen.rule.id != COMPLETION_RULE or seen.fields["status"] != _LOST:
            continue
        for place, text in seen.lines:
            match = _ADAPTER.search(text)
            if match is None or match["name"] not in ethernet:
                continue
            yield Conclusion(
                place=place,
                finding=_finding(match["name"], links, quoted([(place, text)])),
                explains=frozenset({COMPLETION_RULE}),
                is_cause=True,
            )
            return


def _finding(failed: str, links: Mapping[str, str], evidence: tuple[str, ...]) -> Finding:
    ethernet = sorted(name for name, link in links.items() if link.startswith(_ROCE))
    others = {name for name in links if name not in ethernet}
    return Finding(
        rule="lost-beside-infiniband",
        severity=Severity.ERROR,
        symptom=(
            f"transfers over {failed} (RoCE) failed (status 12), "
            f"beside InfiniBand on {named(others)}"
        ),
        evidence=evidence,
        cause=(
            f"NCCL uses {failed} beside the InfiniBand adapters, as its port is up: it is an "
            "Ethernet port (management, storage, a bond) that does not carry RDMA between the nodes"
        ),
        fix=(
            f"leave it out on all nodes: NCCL_IB_HCA=^={','.join(ethernet)} or the names of the "
            "InfiniBand ones (`ibv_devinfo | grep -e hca_id -e link_layer`)"
        ),
        confidence=Confidence.LIKELY,
    )
