"""How long does training wait for its next batch, with the loader that it uses?

A step takes the batch, computes for `step_s`, and asks for the next one: what it then waits is the
stall, whatever workers did meanwhile. No collective is in it, so that no rank waits for another.
"""

import importlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.data import DataLoader

from broadgauge.messages.storage import BatchPlan, CacheProof
from broadgauge.messages.storage_bytes import set_bytes
from broadgauge.probes.devices import Device
from broadgauge.probes.storage.accounting import Operations, Usage
from broadgauge.probes.storage.batch_sets import Samples, Shard, TimedSample
from broadgauge.probes.storage.objects import key_of, open_store
from broadgauge.probes.storage.place import remove_part
from broadgauge.probes.storage.problems import LoaderError
from broadgauge.probes.storage.reads import ReadFiles
from broadgauge.probes.storage.variants import Cache, Figures, Here, Variant


def variants(here: Here, plan: BatchPlan, device: Device) -> Iterator[Variant]:
    for layout in plan.layouts:
        shard = Shard(own=here.own, layout=layout, rank=here.ranks.rank, plan=plan)
        for number, asked in enumerate(here.caches_here):
            yield _variant(here, shard, device, asked, is_first=number == 0)


def _variant(here: Here, shard: Shard, device: Device, asked: Cache, *, is_first: bool) -> Variant:
    """The set is made for the first state of the cache, and gone after the last."""
    files = ReadFiles(asked=asked, ranks=here.ranks, paths=shard.paths)
    is_last = asked == here.caches_here[-1]

    def prepare() -> None:
        if is_first:
            shard.make()
        files.is_fresh = shard.is_fresh and is_first
        files.prepare()

    def prove(figures: Figures) -> CacheProof:
        num_bytes = sum(path.stat().st_size for path in shard.paths()) or figures.num_bytes
        return files.prove(figures.usage.read_bytes, num_bytes)

    def clean() -> None:
        if is_last:
            remove_part(here.own, shard.folder)

    return Variant(
        phase="batch_loading",
        name=shard.layout,
        asked_cache=asked,
        prepare=prepare,
        run=lambda: load_all(shard, device),
        prove=prove,
        clean=clean,
        written_bytes=here.ranks.world_size * set_bytes(shard.plan) if is_first else 0,
    )


@dataclass(slots=True)
class _Heard:
    """What the batches said of how they were read."""

    operations: Operations = field(default_factory=Operations)
    stalls_s: list[float] = field(default_factory=list)
    num_bytes: int = 0
    samples: int = 0


def load_all(shard: Shard, device: Device) -> Figures:
    """One epoch of the shard."""
    before, heard = Usage.now(), _Heard()
    loader = make_loader(shard)
    batches = iter(loader)
    while (batch := _next_batch(batches, heard)) is not None:
        content, seconds = batch
        heard.operations.seconds.extend(seconds)
        heard.num_bytes += content.numel()
        heard.samples += content.shape[0]
        content.to(device.torch_device)
        time.sleep(shard.plan.step_s)  # not busy: the host's core is the loader's while a GPU works
    ended_s = time.monotonic()
    del batches  # ends the workers, whose CPU time counts when they are gone
    usage = before.until_now()
    return Figures(
        num_bytes=heard.num_bytes,
        stall_s=sum(heard.stalls_s),
        busy_s=ended_s - before.time_s,
        usage=usage,
        operations=heard.operations,
        num_operations=heard.samples,
        samples=heard.samples,
        step_stalls_s=tuple(heard.stalls_s),
    )


def _next_batch(batches: Iterator[Any], heard: _Heard) -> tuple[torch.Tensor, list[float]] | None:
    begin_s = time.perf_counter()
    try:
        batch: tuple[torch.Tensor, list[float]] = next(batches)
    except StopIteration:
        return None
    except RuntimeError as error:
        if "DataLoader worker" in str(error):
            raise LoaderError(str(error)) from error
        raise
    heard.stalls_s.append(time.perf_counter() - begin_s)
    return batch


def make_loader(shard: Shard) -> Any:
    plan = shard.plan
    named: dict[str, Any] = {
        "batch_size": plan.batch,
        "num_workers": plan.workers,
        "prefetch_factor": plan.prefetch if plan.workers else None,
        "collate_fn": _collate,
    }
    if shard.layout == "webdataset":
        return DataLoader(_webdataset(shard), **named)
    return DataLoader(Samples(shard), **named)


def _collate(samples: Sequence[TimedSample]) -> tuple[torch.Tensor, list[float]]:
    """`uint8[batch, bytes]`, cut to the shortest, and the seconds of those that have a time."""
    shortest = min(len(content) for content, _ in samples)
    rows = [
        torch.frombuffer(bytearray(content[:shortest]), dtype=torch.uint8) for content, _ in samples
    ]
    return torch.stack(rows), [seconds for _, seconds in samples if seconds is not None]


def _webdataset(shard: Shard) -> Any:
    """Tar files one after the other, shared out among the workers."""
    import webdataset

    urls: list[str] = [str(path) for path in shard.paths()]
    if shard.own.folder is None:
        objects = shard.own.objects
        assert objects is not None

        def open_object(url: str, *_: Any, **__: Any) -> Any:
            name = url.removeprefix("s3://")
            return open_store(objects).open(name, "rb", cache_type="readahead")

        opening = importlib.import_module("webdataset.gopen")  # a function hides it by its name
        opening.gopen_schemes["s3"] = open_object
        urls = [f"s3://{key_of(objects, name)}" for name in shard.names()]
    pipeline = webdataset.WebDataset(
        urls, shardshuffle=False, empty_check=False, nodesplitter=_all_of_them
    )
    return pipeline.map(_untimed)


def _all_of_them(urls: Any) -> Any:
    """This rank's tars are its own; they are not shared out among ranks again."""
    return urls


def _untimed(sample: dict[str, Any]) -> TimedSample:
    """A sample of a stream has no time of its own."""
    content: bytes = sample["bin"]
    return content, None
