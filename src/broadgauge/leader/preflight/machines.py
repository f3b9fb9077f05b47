"""Have all machines the same software, the same time, and GPUs in order? No I/O."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from statistics import median
from typing import Literal

from broadgauge.leader.preflight.checked import Checked
from broadgauge.messages.leader import ClockReading
from broadgauge.messages.preflight import GpuState, PreflightFinding, SoftwareHere
from broadgauge.wording.amounts import show_size, show_time

CLOCK_LIMIT_S = 0.05
"""Source: Prometheus node-exporter's mixin, alert NodeClockSkewDetected."""
USED_BYTES = 2 * 10**9
"""Of a GPU's memory before any rank is there: a driver and its context take less than 1 GB."""

Of = Callable[[SoftwareHere], object]


def of_software(checked: Checked) -> Iterator[PreflightFinding]:
    """Source: NVIDIA/nccl, src/init.cc: ranks with two versions of NCCL refuse each other. Those of
    two versions of torch may hang or give other numbers; a command of the user's may have its own.
    """
    yield from _differ(checked, "torch", lambda here: here.torch or "none", of="our own workloads")
    yield from _differ(checked, "NCCL", lambda here: here.nccl, of="NCCL")
    looks: tuple[tuple[str, Of], ...] = (
        ("Python", lambda here: here.python),
        ("the driver of GPUs", lambda here: here.gpu_driver or "none"),
        ("the number of GPUs", lambda here: None if here.gpus is None else f"{len(here.gpus)}"),
        ("the model of GPUs", _models),
    )
    for what, look in looks:
        yield from _differ(checked, what, look)


def _differ(
    checked: Checked,
    what: str,
    look: Of,
    of: Literal["our own workloads", "NCCL"] | None = None,
) -> Iterator[PreflightFinding]:
    """Most machines' first. What is not known of one is not compared. `of`: launches that would
    fail on two that differ; None: none would."""
    found: dict[object, list[int]] = {}
    for agent, software in _software(checked):
        if (value := look(software)) is not None:
            found.setdefault(value, []).append(agent)
    if len(found) < 2:
        return
    groups = sorted(found.items(), key=lambda group: -len(group[1]))
    told = "; ".join(f"{value} on {checked.named(agents)}" for value, agents in groups)
    text = f"{what} differs: {told}"
    if of is None:
        yield PreflightFinding(kind="differs", text=text)
    else:
        pairs = tuple(_across([agents for _, agents in groups]))
        yield PreflightFinding(kind="fails", text=text, of=of, agents=pairs)


def _across(groups: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """Pairs of two groups."""
    for number, group in enumerate(groups):
        for other in chain.from_iterable(groups[number + 1 :]):
            yield from ((min(each, other), max(each, other)) for each in group)


def _models(here: SoftwareHere) -> str | None:
    return ", ".join(sorted({gpu.model for gpu in here.gpus or ()})) or None


def of_clocks(checked: Checked) -> Iterator[PreflightFinding]:
    """Against the middle of all."""
    if not checked.clocks:
        return
    known = {reading.agent for reading in checked.clocks}
    unknown = [agent for agent in checked.opened if agent not in known]
    if unknown:
        text = f"the clock of {checked.named(unknown)}: no answer to the leader's question in time"
        yield PreflightFinding(kind="unknown", text=text)
    if len(checked.clocks) == 2:
        one, other = checked.clocks
        yield from _of_two(one, other, checked)
        return
    middle_s = median(reading.offset_s for reading in checked.clocks)
    for reading in checked.clocks:
        ahead_s = reading.offset_s - middle_s
        if abs(ahead_s) > CLOCK_LIMIT_S + reading.uncertainty_s:
            way = "ahead of" if ahead_s > 0 else "behind"
            clock = f"the clock of {checked.name(reading.agent)} is {show_time(abs(ahead_s))}"
            yield _clock(f"{clock} {way} the others'", reading.uncertainty_s)


def _of_two(one: ClockReading, other: ClockReading, checked: Checked) -> Iterator[PreflightFinding]:
    """Which of them is wrong nobody can tell."""
    apart_s = abs(one.offset_s - other.offset_s)
    uncertainty_s = one.uncertainty_s + other.uncertainty_s
    if apart_s > CLOCK_LIMIT_S + uncertainty_s:
        clocks = f"the clocks of {checked.name(one.agent)} and {checked.name(other.agent)}"
        yield _clock(f"{clocks} are {show_time(apart_s)} apart", uncertainty_s)


def _clock(words: str, uncertainty_s: float) -> PreflightFinding:
    return PreflightFinding(
        kind="differs",
        text=f"{words} (± {show_time(uncertainty_s)}): is NTP or chrony running there?",
    )


def of_gpus(checked: Checked) -> Iterator[PreflightFinding]:
    """Each GPU that is not in order."""
    for agent, here in _software(checked):
        if here.gpu_driver is not None and here.gpus is None:
            yield PreflightFinding(
                kind="unknown",
                text=f"the state of {checked.name(agent)}'s GPUs: nvidia-smi is not there, or does "
                "not answer",
            )
        for gpu in here.gpus or ():
            for trouble in _troubles(gpu):
                yield PreflightFinding(
                    kind="differs",
                    text=f"{checked.name(agent)}, GPU {gpu.index} ({gpu.model}): {trouble}",
                )


def _troubles(gpu: GpuState) -> Iterator[str]:
    """Source: NVIDIA, "GPU Memory Error Management", row remapping."""
    if gpu.has_remapping_failed:
        yield "a row of its memory could not be replaced: NVIDIA's word is to replace the GPU"
    if gpu.is_remapping_pending:
        yield "a row of its memory is to be replaced: reset the GPU when nothing runs"
    if gpu.uncorrected_errors_count:
        count = gpu.uncorrected_errors_count
        yield f"{count} uncorrected memory errors since its driver was loaded"
    if gpu.is_slowed_by:
        yield f"it is slowed down before anything runs ({', '.join(gpu.is_slowed_by)})"
    if gpu.used_bytes is not None and gpu.used_bytes > USED_BYTES:
        yield f"{show_size(gpu.used_bytes)} of its memory is in use by others"
    if gpu.is_split:
        yield "it is split into MIG's instances"


def _software(checked: Checked) -> list[tuple[int, SoftwareHere]]:
    found = ((agent, each.software) for agent, each in sorted(checked.opened.items()))
    return [(agent, software) for agent, software in found if software is not None]
