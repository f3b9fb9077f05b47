"""What do the numbers that the user's command printed add up to?"""

from collections.abc import Sequence

from broadgauge.merging.counters import intervals_by_label
from broadgauge.merging.metrics import MeasurementBuilder, put_nodes
from broadgauge.merging.rank_blocks import RankBlocks
from broadgauge.messages.rank import CommandSamples
from broadgauge.specs.case import Case
from broadgauge.specs.launching import Mark
from broadgauge.specs.workload import CommandWorkload


def merge_command(
    case: Case, command: CommandWorkload, nodes: Sequence[RankBlocks], marks: Sequence[Mark]
) -> MeasurementBuilder:
    """The mean of each metric's samples; the samples are its series. Nodes' use is that of the
    whole command, its start included."""
    found = MeasurementBuilder()
    said = (node.last(CommandSamples) for node in nodes)
    samples = next((each.samples for each in said if each is not None), {})
    for metric in command.metrics:
        values = samples.get(metric.name, ())
        mean = sum(value / len(values) for value in values) if values else None
        found.put(metric.name, mean, "the command printed no such number")
        if values:
            found.series[metric.name] = values
    put_nodes(found, case, list(intervals_by_label(marks).values()))
    return found
