"""How long until a model's weights are in each rank's memory, or its GPU's?

A plain read takes the whole file at once. A mapped file is only read when its bytes are touched,
so every byte is: otherwise the cost would show in the first step and not here.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from broadgauge.messages.storage import CacheProof, LoadBy, ModelFormat, ModelPlan
from broadgauge.messages.storage_bytes import model_file_bytes
from broadgauge.probes.devices import Device
from broadgauge.probes.storage.accounting import Operations, Parts, Usage
from broadgauge.probes.storage.batch_sets import needs
from broadgauge.probes.storage.objects import key_of, open_store, storage_options
from broadgauge.probes.storage.place import remove_part
from broadgauge.probes.storage.reads import ReadFiles, put_file
from broadgauge.probes.storage.streams import ReadStream, time_streams
from broadgauge.probes.storage.variants import Cache, Figures, Here, Variant, parts_in_order
from broadgauge.probes.trial import RefusedError

Weights = dict[str, torch.Tensor]
TENSOR_BYTES = 32 * 1024**2
"""Of one weight: some hundred in a model of several GB, as large models have."""
PARTS = ("read", "deserialise", "broadcast", "to_device")


def shapes_of(model_bytes: int) -> dict[str, int]:
    """Elements of two bytes, by name; the last weight is the rest."""
    elements, each = max(1, model_bytes // 2), TENSOR_BYTES // 2
    count = -(-elements // each)
    return {f"layers.{n}.weight": min(each, elements - n * each) for n in range(count)}


def make_weights(model_bytes: int) -> Weights:
    """The same on every rank and node."""
    drawn = torch.Generator().manual_seed(0)
    return {
        name: torch.randint(-(2**15), 2**15, (count,), dtype=torch.int16, generator=drawn).view(
            torch.bfloat16
        )
        for name, count in shapes_of(model_bytes).items()
    }


def variants(here: Here, plan: ModelPlan, device: Device, nodes: int) -> Iterator[Variant]:
    for format in plan.formats:
        for load_by in plan.load_by:
            for asked in here.caches_here:
                loading = _Loading(
                    here=here,
                    model_bytes=plan.model_bytes,
                    format=format,
                    load_by=load_by,
                    device=device,
                    asked=asked,
                )
                yield loading.variant(nodes)


@dataclass(slots=True, kw_only=True)
class _Loading:
    here: Here
    model_bytes: int
    format: ModelFormat
    load_by: LoadBy
    device: Device
    asked: Cache
    files: ReadFiles = field(init=False)
    loaded: Weights = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.files = ReadFiles(
            asked=self.asked,
            ranks=self.here.ranks,
            paths=self._paths if self.reads else list,
            is_shared_read=self.load_by == "every-rank",
        )

    @property
    def reads(self) -> bool:
        return self.load_by == "every-rank" or self.here.ranks.rank == 0

    @property
    def folder(self) -> str:
        """Fresh for each variant, so that no mount has seen it."""
        return f"models/{self.format}-{self.load_by}-{self.asked}"

    def variant(self, nodes: int) -> Variant:
        copies = self.here.copies(nodes) if self.load_by == "every-rank" else 1
        return Variant(
            phase="model_loading",
            name=f"{self.format}, {self.load_by}",
            asked_cache=self.asked,
            prepare=self.prepare,
            run=self.run,
            prove=self.prove,
            clean=lambda: remove_part(self.here.own, self.folder),
            written_bytes=copies * model_file_bytes(self.model_bytes),
        )

    def prepare(self) -> None:
        if self.format.startswith("safetensors"):
            needs("safetensors", "safetensors")
        if self.format == "safetensors-mmap" and self.here.own.folder is None:
            raise RefusedError(
                "safetensors-mmap: an object store's objects can't be mapped into memory\n"
                "hint: mount the bucket, or choose safetensors"
            )
        is_writer = self.here.ranks.rank == 0
        if self.load_by == "every-rank":
            is_writer = self.here.is_writer
        if is_writer:
            self.files.is_fresh = self._write()
        elif self.here.own.behind is not None:
            self.files.is_fresh = True
        self.files.prepare()

    def _write(self) -> bool:
        weights = make_weights(self.model_bytes)
        with tempfile.TemporaryDirectory(prefix="broadgauge-model-") as scratch:
            folder = Path(scratch)
            if self.format == "torch":
                torch.save(weights, folder / "model.pt")
            elif self.format == "dcp":
                dcp.save(weights, storage_writer=dcp.FileSystemWriter(folder), no_dist=True)
            else:
                from safetensors.torch import save_file

                save_file(weights, folder / "model.safetensors")
            fresh = [
                put_file(self.here.own, f"{self.folder}/{file.name}", file.read_bytes())
                for file in sorted(folder.iterdir())
            ]
        return all(fresh)

    def _file(self) -> str:
        end = {"torch": "pt", "dcp": ""}.get(self.format, "safetensors")
        return f"{self.folder}/model.{end}"

    def _paths(self) -> list[Path]:
        if self.here.own.folder is None:
            return []
        if self.format == "dcp":
            folder = self.here.own.path(self.folder)
            return [folder / "__0_0.distcp", folder / ".metadata"]
        return [self.here.own.path(self._file())]

    def run(self) -> Figures:
        parts, operations = Parts(), Operations()
        before = Usage.now()
        load = self._read if self.load_by == "every-rank" else self._read_and_broadcast
        num_bytes = load(parts, operations)
        usage = before.until_now()
        self.loaded = {}
        return Figures(
            num_bytes=num_bytes,
            stall_s=usage.time_s,
            busy_s=usage.time_s,
            usage=usage,
            operations=operations,
            parts_s=parts_in_order(parts, PARTS),
        )

    def prove(self, figures: Figures) -> CacheProof | None:
        """A rank that is sent the weights reads nothing."""
        if not self.reads:
            return None
        return self.files.prove(figures.usage.read_bytes, figures.num_bytes)

    def _read(self, parts: Parts, operations: Operations) -> int:
        readers: dict[ModelFormat, Callable[[Parts, Operations], Weights]] = {
            "safetensors": self._read_safetensors,
            "safetensors-mmap": self._map_safetensors,
            "torch": self._read_torch,
            "dcp": self._read_dcp,
        }
        weights = readers[self.format](parts, operations)
        num_bytes: int = sum(w.numel() * w.element_size() for w in weights.values())
        self.loaded = self._to_device(weights, parts)
        return num_bytes

    def _to_device(self, weights: Weights, parts: Parts) -> Weights:
        if self.device.torch_device.type == "cpu":
            return weights
        with parts.timed("to_device"):
            moved = {name: weight.to(self.device.torch_device) for name, weight in weights.items()}
            self.device.synchronize()
        return moved

    def _read_and_broadcast(self, parts: Parts, operations: Operations) -> int:
        """The others wait until the first rank has them, or go on when it failed."""
        num_bytes, error = 0, None
        if self.reads:
            try:
                num_bytes = self._read(parts, operations)
            except BaseException as raised:  # noqa: BLE001  raised again when all have heard
                error = raised
        has_failed = self.here.ranks.from_first(error is not None)
        if error is not None:
            raise error
        if has_failed:
            raise RefusedError("rank 0 could not read the model")
        if self.here.ranks.world_size > 1:
            begin_s = time.perf_counter()
            self._receive()
            parts.add("broadcast", time.perf_counter() - begin_s)
        return num_bytes

    def _receive(self) -> None:
        weights = self.loaded or {
            name: torch.empty(count, dtype=torch.bfloat16, device=self.device.torch_device)
            for name, count in shapes_of(self.model_bytes).items()
        }
        for name in weights:
            dist.broadcast(weights[name], src=0)
        self.device.synchronize()
        self.loaded = weights

    def _whole(self, parts: Parts, operations: Operations) -> bytes:
        begin_s = time.perf_counter()
        own = self.here.own
        if own.folder is None:
            assert own.objects is not None
            content: bytes = open_store(own.objects).cat_file(key_of(own.objects, self._file()))
        else:
            with own.path(self._file()).open("rb", buffering=0) as file:
                content = file.read()
        seconds = time.perf_counter() - begin_s
        parts.add("read", seconds)
        operations.seconds.append(seconds)
        return content

    def _read_safetensors(self, parts: Parts, operations: Operations) -> Weights:
        from safetensors.torch import load

        content = self._whole(parts, operations)
        with parts.timed("deserialise"):
            weights: Weights = load(content)
        return weights

    def _map_safetensors(self, parts: Parts, operations: Operations) -> Weights:
        from safetensors.torch import load_file

        with parts.timed("deserialise"):
            mapped: Weights = load_file(self.here.own.path(self._file()))
        weights = {}
        for name, weight in mapped.items():
            begin_s = time.perf_counter()
            weights[name] = weight.clone()  # touches every byte
            seconds = time.perf_counter() - begin_s
            parts.add("read", seconds)
            operations.seconds.append(seconds)
        return weights

    def _read_torch(self, parts: Parts, operations: Operations) -> Weights:
        own = self.here.own
        begin_s = time.perf_counter()
        if own.folder is None:
            import io

            stream: Any = io.BytesIO(self._whole(parts, operations))
            weights: Weights = torch.load(stream, weights_only=True)
        else:
            with own.path(self._file()).open("rb") as file:
                reader: Any = ReadStream(file, parts, operations)
                weights = torch.load(reader, weights_only=True)
        parts.add("deserialise", time.perf_counter() - begin_s - parts.seconds.get("read", 0.0))
        return weights

    def _read_dcp(self, parts: Parts, operations: Operations) -> Weights:
        own = self.here.own
        if own.folder is not None:
            reader: Any = dcp.FileSystemReader(own.path(self.folder))
        else:
            from torch.distributed.checkpoint._fsspec_filesystem import FsspecReader

            assert own.objects is not None
            url = f"s3://{key_of(own.objects, self.folder)}"
            reader = FsspecReader(url, **storage_options(own.objects))
        time_streams(reader.fs, parts, operations, is_file=own.folder is not None)
        weights = {
            name: torch.empty(count, dtype=torch.bfloat16)
            for name, count in shapes_of(self.model_bytes).items()
        }
        begin_s = time.perf_counter()
        dcp.load(weights, storage_reader=reader, no_dist=True)
        parts.add("deserialise", time.perf_counter() - begin_s - parts.seconds.get("read", 0.0))
        return weights
