"""Which volumes does every pod of a job mount? `kubernetes.volumes`."""

import posixpath
from typing import Literal

from pydantic import Field, model_validator

from broadgauge.specs.base import Name, Spec, placed_error
from broadgauge.specs.kubernetes.names import LabelName, MountPath, ObjectName
from broadgauge.specs.units import CapacityBytes

OURS = "/broadgauge"
"""Where our own volumes are mounted; a user's may not be there."""
SCRATCH = f"{OURS}/scratch"
"""Of each pod alone: home and temporary folder of its processes."""
WORK = f"{SCRATCH}/work"
"""Where ranks run, where no `working_folder` says it."""
_OF_THE_KERNEL = ("/proc/", "/sys/")
_OF_THE_SYSTEM = ("/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sys", "/usr")


class Volume(Spec):
    """A PersistentVolumeClaim: one that is there, or with `size_bytes` one that is made; or a
    ConfigMap that is there."""

    name: LabelName
    """In the pod, and of the claim where `claim` is not said."""
    mount: MountPath
    """Where, in the container that trains."""
    claim: ObjectName | None = None
    """null: `name`."""
    config_map: ObjectName | None = None
    """In the place of a claim: a ConfigMap, whose keys are files there, only to be read."""
    workloads: tuple[Name, ...] | None = Field(default=None, min_length=1)
    """Names of those whose pods mount it. null: all."""
    size_bytes: CapacityBytes | None = None
    """Make it so large; it stays when a job is deleted. null: it is there."""
    storage_class: ObjectName | None = None
    """null: the cluster's default."""
    access: Literal["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"] = "ReadWriteMany"
    """How many nodes may mount it; several nodes need one of the first two."""
    is_read_only: bool = False
    """Mount it so that no pod writes to it."""

    @model_validator(mode="after")
    def _not_over_ours(self) -> "Volume":
        path = self.path
        if f"{path}/".startswith(f"{OURS}/"):
            raise placed_error(f"`{OURS}` is Broadgauge's own folder", ("mount",), "`/data`")
        if path in _OF_THE_SYSTEM or path.startswith(_OF_THE_KERNEL):
            raise placed_error(f"`{path}` hides what every program needs", ("mount",), "`/data`")
        if f"{path}/".startswith("/dev/shm/"):
            raise placed_error(
                "/dev/shm is a memory volume already",
                ("mount",),
                "`kubernetes.shm_bytes`: its size",
            )
        if self.config_map is not None and (self.claim or self.size_bytes) is not None:
            raise placed_error(
                "a volume is a claim or a ConfigMap", ("config_map",), "two entries of `volumes`"
            )
        if self.size_bytes is None and self.storage_class is not None:
            raise placed_error(
                "`storage_class` is of a claim that is made", ("storage_class",), "`size_bytes: …`"
            )
        return self

    @property
    def path(self) -> str:
        """`mount` as a kernel reads it, without `..` and doubled slashes."""
        return "/" + posixpath.normpath(self.mount).lstrip("/")

    @property
    def is_writable(self) -> bool:
        """May a pod write to it?"""
        is_read_only = self.is_read_only or self.access == "ReadOnlyMany"
        return self.config_map is None and not is_read_only

    @property
    def claim_name(self) -> str:
        """Of the PersistentVolumeClaim."""
        return self.claim or self.name
