"""How long does training wait for a save, and when is the checkpoint durable?

Each save is waited for until it is durable before the next one begins, and is then removed. What
was durable last is written beside the checkpoints and said in a file that is kept, so that it can
be told what a node that was lost in the middle of an upload has lost.
"""

import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from broadgauge.messages.storage import CheckpointFormat, CheckpointPlan
from broadgauge.messages.storage_bytes import save_bytes
from broadgauge.probes.devices import Device
from broadgauge.probes.storage.accounting import Usage
from broadgauge.probes.storage.checkpoint_dcp import check_format, start_saving_process
from broadgauge.probes.storage.checkpoint_formats import FOLDER, Durable, Saving, save
from broadgauge.probes.storage.last_durable import SavedCheckpoint, publish
from broadgauge.probes.storage.place import remove_part
from broadgauge.probes.storage.variants import Figures, Here, Variant

TENSOR_BYTES = 16 * 1024**2
"""Of one tensor, all ranks' parts together: gathering and serialising go tensor by tensor."""


@dataclass(slots=True, kw_only=True)
class SavedList:
    """Every checkpoint that was begun, in order."""

    saves: list[SavedCheckpoint] = field(default_factory=list)

    def write(self, file: Path) -> None:
        lines = [json.dumps(each.as_json()) for each in self.saves]
        file.write_text("".join(line + "\n" for line in lines))


def variants(
    here: Here, plan: CheckpointPlan, device: Device, saved: SavedList
) -> Iterator[Variant]:
    for format in plan.formats:
        for number in range(plan.saves):
            saves = _Saves(here=here, plan=plan, device=device, format=format, saved=saved)
            yield saves.variant(number)


@dataclass(slots=True, kw_only=True)
class _Saves:
    here: Here
    plan: CheckpointPlan
    device: Device
    format: CheckpointFormat
    saved: SavedList

    def variant(self, number: int) -> Variant:
        shape = "sharded" if self.plan.is_sharded else "full"
        count = f", save {number + 1}" if self.plan.saves > 1 else ""
        name = f"{self.format}-{shape}-{number}"
        return Variant(
            phase="checkpoint_saving",
            name=f"{self.format}, {shape}{count}",
            asked_cache=None,
            prepare=self._prepare,
            meet=self._meet if number == 0 else lambda: None,
            run=lambda: self._run(name),
            clean=lambda: remove_part(self.here.own, f"{FOLDER}/{name}"),
            written_bytes=save_bytes(self.plan, self.here.ranks.world_size),
        )

    def _prepare(self) -> None:
        own = self.here.own
        if own.folder is not None:
            own.path(FOLDER).mkdir(exist_ok=True)

    def _meet(self) -> None:
        """torch's own saving process starts once, outside of what is timed."""
        check_format(self.format)
        if self.format in {"dcp-async-process", "dcp-async-pinned"}:
            with tempfile.TemporaryDirectory(prefix="broadgauge-dcp-") as folder:
                shared = self.here.ranks.from_first(folder)
                start_saving_process(shared, self.here.ranks.saving)
                self.here.ranks.tell_all(None)

    def _run(self, name: str) -> Figures:
        state = make_state(self.plan.checkpoint_bytes, self.device)
        self.device.synchronize()
        self.here.ranks.tell_all(None)
        before, began_unix_s = Usage.now(), time.time()
        saving = save(
            state,
            self.here.own,
            name,
            self.format,
            is_sharded=self.plan.is_sharded,
            group=self.here.ranks.saving,
        )
        durable = saving.wait_durable(self.here.time_left_s())
        usage = before.until_now()
        self._note(name, began_unix_s, saving, durable)
        return Figures(
            num_bytes=saving.num_bytes,
            stall_s=saving.stall_s,
            busy_s=durable.ended_s,
            usage=usage,
            operations=saving.operations,
            parts_s=durable.parts_s,
            durable_s=durable.durable_s,
            durable_evidence=durable.evidence,
        )

    def _note(self, name: str, began_unix_s: float, saving: Saving, durable: Durable) -> None:
        one = SavedCheckpoint(
            name=name,
            began_unix_s=began_unix_s,
            stall_s=saving.stall_s,
            durable_s=durable.durable_s,
            evidence=durable.evidence,
        )
        self.saved.saves.append(one)
        if self.here.ranks.rank == 0 and durable.durable_s is not None:
            publish(self.here.own, one)


def make_state(checkpoint_bytes: int, device: Device) -> dict[str, Any]:
    """As a sharded training has it: each rank an equal part of every tensor, of random values."""
    elements = max(1, checkpoint_bytes // 4)
    each = max(1, TENSOR_BYTES // 4)
    sizes = [min(each, elements - begin) for begin in range(0, elements, each)]
    if not dist.is_initialized():
        return {f"layer{n}": torch.rand(size) for n, size in enumerate(sizes)}
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor, Shard

    world, kind = dist.get_world_size(), device.torch_device.type
    mesh = DeviceMesh(kind, list(range(world)))
    return {
        f"layer{n}": DTensor.from_local(
            torch.rand(-(-size // world), device=device.torch_device), mesh, [Shard(0)]
        )
        for n, size in enumerate(sizes)
    }
