"""Does a service mesh stand between ranks that can't find each other?"""

from collections.abc import Iterator

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import LogReading
from broadgauge.specs.records.record import Confidence, Finding, Severity

MESH_RULE = "mesh-sidecar"
_CONSEQUENCES = (
    *(
        "store-barrier-timed-out",
        "store-timed-out",
        "store-clients-missing",
        "store-lost",
        "store-refused",
    ),
    *("store-wait-timed-out", "gloo-mesh-failed", "gloo-peer-lost", "gloo-timed-out"),
)


def mesh_between(reading: LogReading) -> Iterator[Conclusion]:
    """Lines of Envoy, and ranks that don't come together though connections are made."""
    mesh = [seen for seen in reading.seen if seen.rule.id == MESH_RULE]
    lost = [seen for seen in reading.seen if seen.rule.id in _CONSEQUENCES]
    if not mesh or not lost:
        return
    yield Conclusion(
        place=lost[0].lines[0][0],
        finding=Finding(
            rule="mesh-between-ranks",
            severity=Severity.ERROR,
            symptom="ranks did not come together, and a service mesh's proxy is in their pods",
            evidence=quoted(line for seen in (lost[0], mesh[0]) for line in seen.lines[:1]),
            cause=(
                "the mesh's sidecar (Envoy, Istio) takes the connections between pods, and its "
                "rules do not know these ports"
            ),
            fix=(
                'annotate the pod templates with sidecar.istio.io/inject: "false", or run in a '
                "namespace without injection"
            ),
            confidence=Confidence.LIKELY,
        ),
        explains=frozenset(seen.rule.id for seen in lost),
    )
