"""How may ranks of emulated nodes throttle a disk, though they have given up all capabilities?

The cluster's PID 1 makes a block cgroup for them and is in it itself, so that nobody takes it for
one that a killed run left. Ranks of root own what they make in it. Only root may make one.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from broadgauge.messages.block_groups import (
    block_hierarchy,
    cluster_group,
    join_group,
    locked,
    own_group,
    remove_left,
)


@dataclass(frozen=True, slots=True)
class ClusterGroup:
    """Of a cluster that lives."""

    root: Path
    """Of the hierarchy."""
    group: Path
    former: Path
    """That PID 1 came from."""

    @classmethod
    def make(cls) -> "ClusterGroup | None":
        """Called by PID 1. None: it may not, and ranks that ask for one are refused."""
        root = block_hierarchy()
        if root is None:
            return None
        made = cls(root, cluster_group(root), own_group(root))
        with suppress(OSError), locked(root):
            remove_left(root)
            made.group.mkdir(exist_ok=True)
            join_group(made.group)
            return made
        return None

    def close(self) -> None:
        """Once no rank is left in it; what can't be removed the next one does."""
        with suppress(OSError), locked(self.root):
            join_group(self.former)
            remove_left(self.root)
