"""What do the numbers that the user's command printed add up to?"""

from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.merging.counters import (
    MarkedInterval,
    busiest_bytes,
    intervals_by_label,
    nodes_use,
    total_of,
)
from broadgauge.merging.metrics import NO_CORES, MeasurementBuilder, put_link, put_nodes
from broadgauge.merging.rank_blocks import RankBlocks
from broadgauge.messages.rank import COUNTED_STEPS, CommandSamples
from broadgauge.specs.case import Case
from broadgauge.specs.launching import Mark
from broadgauge.specs.records.record import ErrorKind, Phase, TrialError
from broadgauge.specs.workloads.workload import CommandWorkload

FEWEST_STEPS = 8
"""Between two readings: each comes up to a tenth of a second after the line that asks for it, so
that one step's bytes may fall on its other side."""
SHORTEST_S = 0.4
"""Readings are asked for half a second apart (probes/step_counts.py), and each comes a little late;
two that are nearer waited for something, and say nothing of the steps between them."""
TOO_FEW_READINGS = f"fewer than {FEWEST_STEPS} steps, or half a second, between two readings"


def merge_command(
    case: Case, command: CommandWorkload, nodes: Sequence[RankBlocks], marks: Sequence[Mark]
) -> MeasurementBuilder:
    """The mean of each metric's samples; the samples are its series, and of the first rank that
    printed it. Nodes' use is that of the steps, from the first sample that counts; where these
    were too few to be told apart, of the whole command."""
    found = MeasurementBuilder()
    said = [each for node in nodes if (each := node.last(CommandSamples)) is not None]
    for metric in command.metrics:
        block = next((each for each in said if each.samples.get(metric.name)), None)
        values = () if block is None else block.samples[metric.name]
        mean = sum(value / len(values) for value in values) if values else None
        found.put(metric.name, mean, "the command printed no such number")
        if block is not None:
            found.series[metric.name] = values
            if metric.name in block.ranks:
                found.metric_ranks[metric.name] = block.ranks[metric.name]
        elif found.error is None:
            found.error = _missing(metric.name, said)
    whole = list(intervals_by_label(marks).values())
    steps = counted_steps(marks)
    put_nodes(found, case, whole if steps is None else [steps.interval])
    if steps is None:
        found.put("cpu_s_per_gbyte", None, TOO_FEW_READINGS)
        put_link(found, case, None, None)
        found.missing |= dict.fromkeys(
            ("wire_bytes", "link_rate_gbps", "line_share_ratio"), TOO_FEW_READINGS
        )
    else:
        traffic = steps.interval.traffic
        num_bytes = None if traffic is None else busiest_bytes(traffic)
        a_step = None if num_bytes is None else num_bytes / steps.count
        put_link(found, case, a_step, steps.elapsed_s / steps.count)
    _put_start(found, marks, steps)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedSteps:
    """What happened between the first and the last reading while a command's steps ran."""

    interval: MarkedInterval
    count: int
    """Samples of its first metric in between."""

    @property
    def elapsed_s(self) -> float:
        return self.interval.end.time_s - self.interval.begin.time_s


def counted_steps(marks: Sequence[Mark]) -> CountedSteps | None:
    """None: there are not two readings."""
    counted = [mark for mark in marks if mark.label.startswith(COUNTED_STEPS)]
    if len(counted) < 2:
        return None
    interval = MarkedInterval(begin=counted[0], end=counted[-1])
    first, last = (
        int(mark.label.removeprefix(COUNTED_STEPS)) for mark in (counted[0], counted[-1])
    )
    found = CountedSteps(interval=interval, count=last - first)
    is_enough = found.count >= FEWEST_STEPS and found.elapsed_s >= SHORTEST_S
    return found if is_enough else None


def _put_start(
    found: MeasurementBuilder, marks: Sequence[Mark], steps: CountedSteps | None
) -> None:
    """What a command takes to its first step: imports, rendezvous, its model and data."""
    begin = next((mark for mark in marks if mark.label == "command:begin"), None)
    if begin is None or steps is None:
        found.put("start_time_s", None, TOO_FEW_READINGS)
        found.put("start_cpu_s", None, TOO_FEW_READINGS)
        return
    start = MarkedInterval(begin=begin, end=steps.interval.begin)
    found.put("start_time_s", start.end.time_s - start.begin.time_s)
    nodes = nodes_use([start])
    parts = [part for n in nodes for part in (n.cpu_user_s, n.cpu_system_s, n.cpu_softirq_s)]
    found.put("start_cpu_s", total_of(*parts) if parts else None, NO_CORES)


def _missing(metric: str, said: Sequence[CommandSamples]) -> TrialError | None:
    """A command that succeeded and printed nothing of this is refused. None: it did not end."""
    if not said or any(each.exit_code for each in said):
        return None
    first = said[0]
    why = first.missing.get(metric, f"metric `{metric}`: no rank printed it")
    lines = "; its last lines:" if first.last_lines else "; it printed no line"
    return TrialError(
        kind=ErrorKind.REFUSED,
        message="\n".join([f"{why}{lines}", *first.last_lines[-5:]]),
        phase=Phase.MEASURE,
        last_lines=first.last_lines,
    )
