"""A kind of workload that nobody needs: its ranks say how long a nap took."""

from typing import Literal

from pydantic import Field

from broadgauge.specs.base import Name
from broadgauge.specs.workloads.common import WorkloadBase


class ToyWorkload(WorkloadBase):
    """Ranks that nap."""

    kind: Literal["toy"]
    """What it is read as."""
    name: Name = "toy"
    """In labels and selectors."""
    naps: int = Field(default=3, ge=1)
    """How many are timed."""
