"""How is a checkpoint saved in each format, how long does training wait, and when is it durable?

    own = claim(place, token)                             # place.py
    saving = save(state, own, "step100", "dcp-async", is_sharded=True, group=gloo_group)
    saving.stall_s                                        # training goes on here
    durable = saving.wait_durable(limit_s=600)            # later, or after the last step

`group`: a Gloo group of all ranks that training itself does not use, since a background save's
collectives would mix with training's and hang (seen with torch 2.11 on Gloo); None: one rank, no
process group. All ranks call `save` and `wait_durable` in the same order.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist

from broadgauge.messages.storage import CheckpointFormat
from broadgauge.probes.storage import checkpoint_dcp
from broadgauge.probes.storage.accounting import Operations, Parts
from broadgauge.probes.storage.checkpoint_state import (
    gathered,
    local_bytes,
    local_parts,
    tensors_of,
    whole_bytes,
)
from broadgauge.probes.storage.durable import DurableSince, fsync_folder, wait_until_durable
from broadgauge.probes.storage.place import OwnPlace
from broadgauge.probes.storage.streams import WriteStream, writing
from broadgauge.probes.trial import RefusedError

FOLDER = "checkpoints"


@dataclass(frozen=True, slots=True, kw_only=True)
class Durable:
    """When was the checkpoint durable, all ranks' parts of it, and who says so?"""

    durable_s: float | None
    """From the begin of the save; None: it can't be known, `evidence` says why."""
    evidence: str
    ended_s: float
    """From the begin of the save until this rank's last write returned, in the background too."""
    parts_s: dict[str, float]
    """As StorageBlock's, now with what went on in the background."""


@dataclass(slots=True, kw_only=True)
class Saving:
    """A save that has begun: training has waited, and goes on."""

    own: OwnPlace
    name: str
    group: Any
    began_s: float
    """On the monotonic clock."""
    num_bytes: int
    """Of tensors, that this rank saves."""
    parts: Parts = field(default_factory=Parts)
    operations: Operations = field(default_factory=Operations)
    stall_s: float = 0.0
    sizes: dict[str, int | None] = field(default_factory=dict)
    """Of the files or objects that this rank wrote, by name; complete when the save has ended.
    None: whatever size it has is right."""
    background: Any = None
    """The future of a save that goes on; None: it has ended when training waited no longer."""
    ended_s: float = 0.0

    @property
    def parts_s(self) -> dict[str, float]:
        """In the order of StorageBlock."""
        order = ("gather", "device_to_host", "serialise", "write", "sync", "upload")
        found = self.parts.seconds
        return {part: found[part] for part in order if part in found}

    def wait_durable(self, limit_s: float) -> Durable:
        """Raises what the background save raised; TimeoutError after the limit."""
        self._wait_for_background(limit_s)
        seen = wait_until_durable(self.own, self.sizes, self.began_s + self.ended_s, limit_s)
        durable_s = None if seen.at_s is None else seen.at_s - self.began_s
        if self.own.behind is not None and durable_s is not None:
            self.parts.add("upload", max(0.0, durable_s - self.ended_s))
        slowest_s, evidence = self._of_all_ranks(durable_s, seen)
        return Durable(
            durable_s=slowest_s, evidence=evidence, ended_s=self.ended_s, parts_s=self.parts_s
        )

    def _wait_for_background(self, limit_s: float) -> None:
        if self.background is None:
            return
        self.background.result(limit_s)
        checkpoint_dcp.note_files(self)
        self._end()
        self.background = None

    def _end(self) -> None:
        """What was written has its name on the disk, too."""
        if self.own.folder is not None and self.sizes:
            with self.parts.timed("sync"):
                fsync_folder(self.own.path(f"{FOLDER}/{self.name}"))
                fsync_folder(self.own.path(FOLDER))
        self.ended_s = time.monotonic() - self.began_s

    def _of_all_ranks(
        self, durable_s: float | None, seen: DurableSince
    ) -> tuple[float | None, str]:
        """A checkpoint is durable when the last rank's part is."""
        said = (durable_s, seen.evidence, bool(self.sizes))
        heard: list[Any] = [said]
        if self.group is not None:
            heard = [None] * dist.get_world_size(self.group)
            dist.all_gather_object(heard, said, group=self.group)
        writers = [(when, why) for when, why, has_written in heard if has_written]
        for when, why in writers:
            if when is None:
                return None, why
        if not writers:
            return None, "no rank wrote anything"
        return max((float(when), why) for when, why in writers if when is not None)


def save(
    state: Mapping[str, Any],
    own: OwnPlace,
    name: str,
    format: CheckpointFormat,
    *,
    is_sharded: bool,
    group: Any = None,
) -> Saving:
    """`state`: nested mappings and lists of tensors (DTensors where sharded) and plain values.

    `is_sharded`: each rank saves its part; otherwise rank 0 gathers all of it and saves.
    Raises RefusedError where the format needs what is not here, OSError as the storage says.
    """
    rank = 0 if group is None else dist.get_rank(group)
    saves = is_sharded or rank == 0
    num_bytes = local_bytes(state) if is_sharded else whole_bytes(state)
    saving = Saving(
        own=own,
        name=name,
        group=group,
        began_s=time.monotonic(),
        num_bytes=num_bytes if saves else 0,
    )
    if format in {"torch", "safetensors"}:
        _save_files(saving, state, format, is_sharded=is_sharded, rank=rank)
    else:
        checkpoint_dcp.save(saving, state, format, is_sharded=is_sharded, rank=rank)
    if saving.background is None:
        saving._end()
    saving.stall_s = time.monotonic() - saving.began_s
    return saving


def _save_files(
    saving: Saving, state: Any, format: CheckpointFormat, *, is_sharded: bool, rank: int
) -> None:
    """One file: `rank3.pt`, or `full.pt` of the first rank."""
    if is_sharded:
        content = local_parts(state, saving.parts)
    else:
        content = gathered(state, saving.parts, is_first=rank == 0)
    if content is None:
        return
    end = "pt" if format == "torch" else "safetensors"
    name = f"{FOLDER}/{saving.name}/{f'rank{rank}' if is_sharded else 'full'}.{end}"
    begin_s = time.perf_counter()
    with writing(saving.own, name, saving.parts, saving.operations) as stream:
        if format == "torch":
            _write_torch(content, stream)
        else:
            _write_safetensors(content, stream)
    total_s = time.perf_counter() - begin_s
    beside_s = sum(saving.parts.seconds.get(part, 0.0) for part in ("write", "sync", "upload"))
    saving.parts.add("serialise", max(0.0, total_s - beside_s))
    saving.sizes[name] = stream.num_bytes


def _write_torch(content: Any, stream: WriteStream) -> None:
    torch.save(content, stream)


def _write_safetensors(content: Any, stream: WriteStream) -> None:
    """Tensors only: it has no place for anything else."""
    try:
        from safetensors.torch import save as to_bytes
    except ImportError as error:
        raise RefusedError("safetensors is not installed\nhint: pip install safetensors") from error
    stream.write(to_bytes({path: tensor.contiguous() for path, tensor in tensors_of(content)}))
