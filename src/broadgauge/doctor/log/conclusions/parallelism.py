"""Does a job open enough channels between nodes for a fast network?"""

from collections.abc import Iterator

from broadgauge.doctor.log.conclusions.conclusion import Conclusion
from broadgauge.doctor.log.conclusions.limits import FAST_GBPS, FEW_CHANNELS
from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.job import has_several_nodes, largest, uses_sockets, variable
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.specs.units import show_rate

_LIMITS = ("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS")


def few_channels(reading: LogReading) -> Iterator[Conclusion]:
    """Sockets are told of in sockets.py; here RDMA and plugins."""
    communicator = largest(reading)
    users = [p for p in reading.processes.values() if p.network and not uses_sockets(p)]
    if communicator is None or communicator.num_channels is None or not has_several_nodes(reading):
        return
    speeds = [
        adapter.speed_mbps / 1000
        for process in users
        for adapter in process.adapters.values()
        if adapter.speed_mbps is not None
    ]
    if communicator.num_channels > FEW_CHANNELS or max(speeds, default=0.0) < FAST_GBPS:
        return
    asked = [f"{name}={value}" for name in _LIMITS if (value := variable(users, name))]
    yield Conclusion(
        place=communicator.place,
        finding=Finding(
            rule="channels-few",
            severity=Severity.WARNING,
            symptom=(
                f"{communicator.num_channels} channels for adapters of {show_rate(max(speeds))}"
            ),
            evidence=(*asked, f"communicator {communicator.identity}"),
            cause=(
                f"{asked[0]} allows no more"
                if asked
                else "NCCL's search found few paths: GPUs and NICs far apart, or a topology that a "
                "virtual machine or container hides"
            ),
            fix=(
                f"unset {asked[0].partition('=')[0]}"
                if asked
                else "NCCL_DEBUG_SUBSYS=GRAPH shows the search; NCCL_TOPO_FILE tells a hidden "
                "topology; NCCL_MIN_NCHANNELS=8 is worth a measurement"
            ),
            confidence=Confidence.CERTAIN if asked else Confidence.POSSIBLE,
        ),
    )
