"""What must a plan know of the platform that its cases run on? Its name, and what it has."""

from dataclasses import dataclass
from typing import Literal

PLANNED_PLATFORMS = ("slurm", "skypilot")
PlatformKind = Literal["emulated", "local", "hosts", "kubernetes"]
ON_OTHER_MACHINES: frozenset[PlatformKind] = frozenset({"hosts", "kubernetes"})
"""Their ranks read other machines' files: what a workload needs can't be looked for here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonWithoutTorch:
    """One that is to run ranks."""

    python: str
    """As the experiment names it, with its version."""
    host: str | None = None
    """As ssh is given it. None: this machine."""
    field: str | None = None
    """Of the experiment, where it is named: `hosts[1].python`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """What a platform says that it has for ranks to run on; a plan is made from this alone."""

    place: str
    """For people: `this machine`."""
    num_gpus: int
    num_cores: int
    """As far as ranks may use them."""
    are_shared: bool
    """True: these are one machine's, shared out over all nodes. False: each node has as many."""
    most_nodes: int | None = None
    """None: as many as an experiment may have."""
    can_shape: bool = False
    """Links between nodes are built, at the rates that networks name."""
    can_delay: bool = False
    """Links can have delay, jitter and loss."""
    finds_networks: bool = False
    """Its networks are there already: those are run that say where they are `found`."""
    without_torch: tuple[PythonWithoutTorch, ...] = ()
    """Empty: all have it, or it is not known before ranks start."""

    def has_gpus_for(self, nodes: int, ranks_per_node: int) -> bool:
        """Is there a GPU for each rank?"""
        wanted = nodes * ranks_per_node if self.are_shared else ranks_per_node
        return self.num_gpus >= wanted

    def gpus_per_node(self, nodes: int) -> int:
        """How many has each of this many nodes?"""
        return self.num_gpus // nodes if self.are_shared else self.num_gpus
