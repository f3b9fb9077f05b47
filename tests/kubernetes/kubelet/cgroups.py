"""How is a container's memory limited, and was it killed for want of it? By the memory cgroup.

Version 1 or 2, whichever has the memory controller; where neither can be written there is no
limit, and `make` says so by None. Source: the kernel's cgroup-v1/memory.rst and cgroup-v2.rst.
"""

from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, kw_only=True)
class MemoryCgroup:
    """One container's."""

    folder: Path
    is_unified: bool

    @property
    def procs(self) -> Path:
        return self.folder / "cgroup.procs"

    def num_oom_kills(self) -> int:
        name = "memory.events" if self.is_unified else "memory.oom_control"
        for line in (self.folder / name).read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == "oom_kill":
                return int(value)
        return 0

    def remove(self) -> None:
        self.folder.rmdir()


def make(name: str, limit_bytes: int) -> MemoryCgroup | None:
    """A cgroup with this limit; None where there is no memory controller to be had."""
    parent = _parent()
    if parent is None:
        return None
    folder, is_unified = parent
    path = folder / name
    try:
        path.mkdir(exist_ok=True)
        limit = "memory.max" if is_unified else "memory.limit_in_bytes"
        (path / limit).write_text(str(limit_bytes))
        swap = path / ("memory.swap.max" if is_unified else "memory.swappiness")
        if swap.exists():  # a kubelet lets no pod swap, unless it is told
            swap.write_text("0")
    except OSError:
        return None
    return MemoryCgroup(folder=path, is_unified=is_unified)


def _parent() -> tuple[Path, bool] | None:
    """Below which folder may cgroups be made? Version 2: at its top, where no process is in the
    way of the controller."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return _ROOT / "memory" / path.lstrip("/"), False
    controllers_file = _ROOT / "cgroup.subtree_control"
    if controllers_file.exists() and "memory" in controllers_file.read_text().split():
        return _ROOT, True
    return None


def remove_leftovers(prefix: str) -> None:
    """Remove empty cgroups of an earlier process that was killed."""
    parent = _parent()
    if parent is None:
        return
    for path in parent[0].glob(f"{prefix}*"):
        if path.is_dir() and not (path / "cgroup.procs").read_text():
            path.rmdir()


def own_prefix(folder: Path) -> str:
    """Of all cgroups of the kubelet that has this folder."""
    return f"process-kubelet-{folder.stat().st_ino}-"
