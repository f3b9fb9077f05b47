"""What does SkyPilot take as a task, as far as we write it? A cheap model for all tests.

Source: SkyPilot 0.14.1, `sky.utils.schemas`: get_task_schema, get_resources_schema,
get_storage_schema. test_skypilot_itself.py holds it against SkyPilot.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from ruamel.yaml import YAML

VariableName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")]
RcloneSize = Annotated[str, StringConstraints(pattern=r"^[0-9]+[bkmgtpBKMGTP]?$")]
RcloneTime = Annotated[
    str, StringConstraints(pattern=r"^((\d+(\.\d+)?|\.\d+)(ms|[smhdwMy]))+$|^\d+(\.\d+)?$")
]
INFRA = r"^(?i:[a-z]+|\*)(/[^/]+){0,2}$|^(?i:k8s|kubernetes)(/.+)?$"


class Strict(BaseModel):
    """Nothing else is allowed, and nothing is read as something else."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Autostop(Strict):
    """Of `resources`."""

    idle_minutes: int = Field(ge=0)
    down: bool
    wait_for: Literal["jobs_and_ssh", "jobs", "none"]


class Resources(Strict):
    """Of each node."""

    infra: Annotated[str, StringConstraints(pattern=INFRA)] | None = None
    accelerators: str | None = None
    instance_type: str | None = None
    cpus: str | None = None
    memory: str | None = None
    network_tier: Literal["standard", "best"] | None = None
    disk_tier: Literal["low", "medium", "high", "ultra", "best"] | None = None
    disk_size: int | None = None
    image_id: str | None = None
    use_spot: bool | None = None
    max_hourly_cost: float | None = Field(default=None, gt=0)
    autostop: Autostop


class Cached(Strict):
    """Of a mount with a cache."""

    transfers: int | None = Field(default=None, ge=1)
    buffer_size: RcloneSize | None = None
    vfs_cache_max_size: RcloneSize | None = None
    vfs_cache_max_age: RcloneTime | None = None
    vfs_read_ahead: RcloneSize | None = None
    vfs_read_chunk_size: RcloneSize | None = None
    vfs_read_chunk_streams: int | None = Field(default=None, ge=0)
    vfs_write_back: RcloneTime | None = None
    read_only: bool | None = None


class MountConfig(Strict):
    """`config` of a mount."""

    mount_cached: Cached


class Mount(Strict):
    """An object of `file_mounts`."""

    source: str
    mode: Literal["MOUNT", "MOUNT_CACHED", "COPY"]
    store: str | None = None
    config: MountConfig | None = None


class Task(Strict):
    """The whole file."""

    name: str
    workdir: str | None = None
    num_nodes: int = Field(ge=1)
    resources: Resources
    envs: dict[VariableName, str] = Field(default_factory=dict)
    secrets: dict[VariableName, None] = Field(default_factory=dict)
    file_mounts: dict[str, str | Mount] = Field(default_factory=dict)
    volumes: dict[str, str] = Field(default_factory=dict)
    setup: str | None = None
    run: str | None = None


def read_task(text: str) -> Task:
    """Raises pydantic's ValidationError."""
    told: Any = YAML(typ="safe", pure=True).load(text)
    return Task.model_validate(told)
