"""What may a rule ask of the job as a whole, before it names a cause? `asks:` in doctor/rules.

A cause that the rest of the log contradicts is worse than none: NICs of different rails are no
cause on nodes with one adapter each.
"""

from collections.abc import Callable, Mapping

from broadgauge.doctor.log.facts import LogReading, Way


def _uses_gdr(reading: LogReading) -> bool:
    return any(
        Way.GDRDMA in ways
        for communicator in reading.communicators.values()
        for ways in communicator.paths.values()
    )


def _has_one_adapter(reading: LogReading) -> bool:
    listed = [process.adapters for process in reading.processes.values() if process.adapters]
    return bool(listed) and all(len(adapters) == 1 for adapters in listed)


def _is_infiniband(reading: LogReading) -> bool:
    """Each adapter that NCCL lists: what it says of RoCE is no cause then."""
    links = [
        adapter.link
        for process in reading.processes.values()
        for adapter in process.adapters.values()
    ]
    return bool(links) and all(link.startswith("IB") for link in links)


CIRCUMSTANCES: Mapping[str, Callable[[LogReading], bool]] = {
    "uses-gdr": _uses_gdr,
    "has-one-adapter": _has_one_adapter,
    "is-infiniband": _is_infiniband,
}
"""By name: are channels over GPUDirect RDMA listed; has each process one adapter; are all adapters
InfiniBand's? False, too, where the log does not say."""


def circumstances_of(reading: LogReading) -> Callable[[str], bool]:
    """Does the named one hold? Each is worked out once. Raises KeyError of unknown names, which a
    test of the rules holds that there are none."""
    known: dict[str, bool] = {}

    def holds(name: str) -> bool:
        if name not in known:
            known[name] = CIRCUMSTANCES[name](reading)
        return known[name]

    return holds
