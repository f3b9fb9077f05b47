"""What may a rule ask of the job as a whole, before it names a cause? `asks:` in doctor/rules.

A cause that the rest of the log contradicts is worse than none: NICs of different rails are no
cause on nodes with one adapter each.
"""

from collections.abc import Callable, Mapping

from broadgauge.doctor.log.facts import LogReading, Way

_WAITING = frozenset({"torch-watchdog-timeout", "torch-watchdog-stuck", "store-barrier-timed-out"})


def _uses_gdr(reading: LogReading) -> bool:
    return any(
        Way.GDRDMA in ways
        for communicator in reading.communicators.values()
        for ways in communicator.paths.values()
    )


def _has_one_adapter(reading: LogReading) -> bool:
    listed = [process.adapters for process in reading.processes.values() if process.adapters]
    return bool(listed) and all(len(adapters) == 1 for adapters in listed)


def _sets_gid_index(reading: LogReading) -> bool:
    return any("NCCL_IB_GID_INDEX" in process.variables for process in reading.processes.values())


def _waits(reading: LogReading) -> bool:
    """A rank timed out waiting for others, or some initialised a communicator and others not."""
    return any(seen.rule.id in _WAITING for seen in reading.seen) or any(
        communicator.started - communicator.completed
        for communicator in reading.communicators.values()
    )


def _nccl_began(reading: LogReading) -> bool:
    return reading.num_nccl_lines > 0


def _by_torchrun_rendezvous(reading: LogReading) -> bool:
    return any(seen.rule.id == "rendezvous-lost" for seen in reading.seen)


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
    "sets-gid-index": _sets_gid_index,
    "waits": _waits,
    "nccl-began": _nccl_began,
    "by-torchrun-rendezvous": _by_torchrun_rendezvous,
    "is-infiniband": _is_infiniband,
}
"""By name: are channels over GPUDirect RDMA listed; has each process one adapter; does any set
NCCL_IB_GID_INDEX; does any wait for others in vain; did NCCL begin, so that ranks had met at their
store; did torchrun's rendezvous fail; are all
adapters InfiniBand's? False, too, where the log does not say."""


def circumstances_of(reading: LogReading) -> Callable[[str], bool]:
    """Does the named one hold? Each is worked out once. Raises KeyError of unknown names, which a
    test of the rules holds that there are none."""
    known: dict[str, bool] = {}

    def holds(name: str) -> bool:
        if name not in known:
            known[name] = CIRCUMSTANCES[name](reading)
        return known[name]

    return holds
