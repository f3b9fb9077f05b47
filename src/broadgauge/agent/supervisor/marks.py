"""What is a mark at which all ranks of this supervisor wait?"""

from dataclasses import dataclass

from broadgauge.messages.agent import Marked, NodeReading


@dataclass(slots=True, kw_only=True)
class OpenMark:
    """Counters are read while all ranks of the launch wait, and then they go on.

    Where other machines have ranks of the launch, the leader says when to read and when to release.
    """

    label: str
    reached_s: float
    """When the last rank of this supervisor arrived."""
    nodes: tuple[NodeReading, ...] = ()

    def marked(self, released_s: float) -> Marked:
        """What a mark begins is timed from the release, what it ends to the last rank's arrival:
        the reading is part of neither."""
        time_s = released_s if self.label.endswith(":begin") else self.reached_s
        return Marked(label=self.label, time_s=time_s, nodes=self.nodes)
