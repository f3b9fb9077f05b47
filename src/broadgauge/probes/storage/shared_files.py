"""Who reads the files that one rank wrote, and in whose memory are they cached together?

All ranks call these functions together, with a group of the host's memory (Gloo).
"""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch.distributed as dist

from broadgauge.messages.vocabulary import Phase
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.storage.cache_proof import SeenRead
from broadgauge.probes.trial import Trial

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Names a running kernel, whatever namespaces its processes are in. Source: proc_sys_kernel(5)."""
_TOKEN = "token"
T = TypeVar("T")


def host_group(trial: Trial) -> Any:
    """Of all ranks, for the host's memory. One rank may make and write all files while the others
    wait: it has the longer of both phases' time."""
    timeouts_s = trial.command.process_group_timeouts_s
    timeout_s = max(timeouts_s[Phase.WARM_UP], timeouts_s[Phase.MEASURE])
    return dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFolder:
    """Of the rank that writes the files, with all that read them."""

    path: Path
    writer: int
    """Its rank."""
    is_for_all: bool
    """Do all ranks see it? Else each node has one."""

    @property
    def is_written_here(self) -> bool:
        return bool(self.writer == dist.get_rank())


def shared_folder(own: Path, identity: RankIdentity, group: Any) -> SharedFolder:
    """Rank 0's where all ranks see it; else that of the first rank of each node. `own`: this rank's
    folder, beside which those of the others are."""
    is_for_all = is_shared(own, group)
    first = 0 if is_for_all else identity.rank - identity.local_rank
    return SharedFolder(path=own.parent / f"rank{first}", writer=first, is_for_all=is_for_all)


def is_shared(own: Path, group: Any) -> bool:
    """Does every rank see what rank 0 writes into its folder?"""
    told = [secrets.token_hex(8)]
    dist.broadcast_object_list(told, src=0, group=group)
    token = own.parent / "rank0" / f"{_TOKEN}-{told[0]}"
    if dist.get_rank() == 0:
        token.touch()
    dist.barrier(group)
    seen: list[bool] = [False] * dist.get_world_size()
    dist.all_gather_object(seen, token.exists(), group=group)
    if dist.get_rank() == 0:
        token.unlink()
    return all(seen)


class CacheSharers:
    """The ranks that find a file, or those of a folder, in the same page cache as this one."""

    def __init__(self, path: Path, group: Any) -> None:
        """`path`: the file or folder, which is there on every rank. Raises OSError."""
        self.group = group
        status = path.stat()
        places: list[Any] = [None] * dist.get_world_size()
        mine = (BOOT.read_text(), status.st_dev, status.st_ino)
        dist.all_gather_object(places, mine, group=group)
        self.ranks = tuple(rank for rank, place in enumerate(places) if place == mine)

    @property
    def is_first(self) -> bool:
        """Does this rank speak for all of them?"""
        return bool(self.ranks[0] == dist.get_rank())

    def told_by_first(self, value: T) -> T:
        """What that rank gives here."""
        told: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(told, value, group=self.group)
        first: T = told[self.ranks[0]]
        return first

    def seen_together(self, needed_bytes: int, seen: SeenRead) -> SeenRead:
        """What one reads, the others find in memory: the device gave to all of them what any needs.

        `needed_bytes`: of this rank, of the file; `seen`: by this rank, of the whole file.
        """
        told: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(told, (needed_bytes, seen.device_bytes), group=self.group)
        of_ours = [told[rank] for rank in self.ranks]
        counts = [device_bytes for _, device_bytes in of_ours]
        return SeenRead(
            size_bytes=min(seen.size_bytes, sum(needed for needed, _ in of_ours)),
            device_bytes=None if None in counts else sum(counts),
            cached_before_bytes=seen.cached_before_bytes,
            whole_bytes=seen.size_bytes,
        )
