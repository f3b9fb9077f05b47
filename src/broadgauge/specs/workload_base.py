"""What has each workload, whatever runs on the ranks?"""

from typing import ClassVar

from pydantic import Field

from broadgauge.specs.base import EnvironmentVariables, Name, Spec


class WorkloadBase(Spec):
    """What each workload has: a name, and the networks it runs on (all, when not named)."""

    networks: tuple[Name, ...] | None = Field(default=None, min_length=1)
    """Those it runs on, by name; null: all."""
    environment: EnvironmentVariables = Field(default_factory=dict)
    """Variables for its ranks; they win over the network's and the experiment's."""

    planned: ClassVar[dict[str, str]] = {"trace": "profiler traces", "storage": "storages"}
