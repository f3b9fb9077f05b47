"""What is a storage? A folder of the ranks' machines, and what is said of it."""

from pydantic import Field

from broadgauge.specs.base import Name, Spec


class Storage(Spec):
    """One place where a training's files may be: a disk, a mount, memory."""

    name: Name
    """Names it in tables, labels and selectors."""
    path: str = Field(min_length=1, max_length=4096)
    """A folder that is there on every node; a relative one starts at the experiment's. Broadgauge
    makes one of its own in it, and touches nothing else."""
    read_gbyte_per_s: float | None = Field(default=None, gt=0)
    """What it is said to read, of one node; null: not known. It labels; what it does is measured.
    """
    write_gbyte_per_s: float | None = Field(default=None, gt=0)
    """The same for writing."""
    is_durable: bool | None = None
    """Does it outlive the node? null: not known."""
