"""What does a data set of each layout look like on the storage, and how is one sample of it read?

Each rank has a shard of its own, of random bytes, made once in a trial.
"""

import base64
import io
import json
import random
import tarfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broadgauge.messages.storage import BatchPlan, DataLayout
from broadgauge.probes.storage.objects import key_of, open_store
from broadgauge.probes.storage.place import OwnPlace
from broadgauge.probes.storage.reads import put_file
from broadgauge.probes.trial import RefusedError


@dataclass(slots=True, kw_only=True)
class Shard:
    """One rank's part of the set in one layout."""

    own: OwnPlace
    layout: DataLayout
    rank: int
    plan: BatchPlan
    is_fresh: bool = False
    offsets: list[int] = field(default_factory=list)
    """Of the lines of a JSONL file, and its end."""

    @property
    def folder(self) -> str:
        return f"batches/{self.layout}/rank{self.rank}"

    def names(self) -> list[str]:
        match self.layout:
            case "files":
                return [f"{self.folder}/{number:07d}.bin" for number in range(self.plan.samples)]
            case "jsonl":
                return [f"{self.folder}/samples.jsonl"]
            case "webdataset":
                return [f"{self.folder}/{number:05d}.tar" for number in range(self.num_tars)]
            case _:
                return []

    @property
    def num_tars(self) -> int:
        """At least one for each worker of the loader, which share none."""
        return min(self.plan.samples, max(1, self.plan.workers))

    def paths(self) -> Sequence[Path]:
        """All files that the loader reads; none without a folder."""
        if self.own.folder is None:
            return []
        if self.layout == "arrow":
            return sorted(self.own.path(self.folder).glob("*.arrow"))
        return [self.own.path(name) for name in self.names()]

    def make(self) -> None:
        """Raises RefusedError where the layout needs a package, or a folder, that is not here."""
        contents = self._contents()
        if self.layout == "arrow":
            self._make_arrow()
            return
        fresh = [put_file(self.own, name, content) for name, content in contents]
        self.is_fresh = all(fresh)

    def _contents(self) -> Iterator[tuple[str, bytes]]:
        match self.layout:
            case "files":
                yield from zip(self.names(), self._samples(), strict=True)
            case "jsonl":
                yield self.names()[0], self._lines()
            case "webdataset":
                needs("webdataset", "'broadgauge[storage]'")
                yield from zip(self.names(), self._tars(), strict=True)

    def _samples(self) -> Iterator[bytes]:
        drawn = random.Random(self.rank)
        return (drawn.randbytes(self.plan.sample_bytes) for _ in range(self.plan.samples))

    def _lines(self) -> bytes:
        """Each `{"text": …}` as long as a sample."""
        lines = []
        for content in self._samples():
            text = base64.b64encode(content)[: max(1, self.plan.sample_bytes - 13)].decode()
            lines.append(json.dumps({"text": text}).encode() + b"\n")
        self.offsets = [0]
        for line in lines:
            self.offsets.append(self.offsets[-1] + len(line))
        return b"".join(lines)

    def _tars(self) -> Iterator[bytes]:
        samples = enumerate(self._samples())
        for number in range(self.num_tars):
            whole = io.BytesIO()
            with tarfile.open(fileobj=whole, mode="w") as tar:
                for _ in range(len(range(number, self.plan.samples, self.num_tars))):
                    index, content = next(samples)
                    info = tarfile.TarInfo(f"{index:07d}.bin")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
            yield whole.getvalue()

    def _make_arrow(self) -> None:
        needs("datasets", "'broadgauge[data]'")
        if self.own.folder is None:
            raise RefusedError(
                "arrow: datasets maps its files into memory, which an object store has not\n"
                "hint: mount the bucket, or choose files, jsonl or webdataset"
            )
        import datasets

        whole = datasets.Dataset.from_dict({"data": list(self._samples())})
        with quiet_bars(datasets):
            whole.save_to_disk(str(self.own.path(self.folder)))


def needs(module: str, installed: str) -> None:
    import importlib.util

    if importlib.util.find_spec(module) is None:
        raise RefusedError(f"needs {module}\nhint: pip install {installed}")


class quiet_bars:  # noqa: N801  used as `with quiet_bars(...)`
    """No progress bars in a rank's log."""

    def __init__(self, datasets: Any) -> None:
        self._datasets = datasets

    def __enter__(self) -> None:
        self._datasets.disable_progress_bars()

    def __exit__(self, *_: object) -> None:
        self._datasets.enable_progress_bars()


TimedSample = tuple[bytes, float | None]
"""What was read, and how long it took; None: it has no time of its own."""


class Samples:
    """A map-style set for PyTorch's DataLoader: bytes of a sample, and how long they took."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._names = shard.names()
        self._arrow: Any = None

    def __len__(self) -> int:
        return self._shard.plan.samples

    def __getitem__(self, index: int) -> TimedSample:
        begin_s = time.perf_counter()
        match self._shard.layout:
            case "jsonl":
                begin, end = self._shard.offsets[index : index + 2]
                line = read_range(self._shard.own, self._names[0], begin, end)
                content = json.loads(line)["text"].encode()
            case "arrow":
                content = self._from_arrow(index)
            case _:
                content = read_range(self._shard.own, self._names[index], None, None)
        return content, time.perf_counter() - begin_s

    def _from_arrow(self, index: int) -> bytes:
        if self._arrow is None:  # in each worker, as it maps the files
            import datasets

            self._arrow = datasets.load_from_disk(str(self._shard.own.path(self._shard.folder)))
        content: bytes = self._arrow[index]["data"]
        return content


def read_range(own: OwnPlace, name: str, begin: int | None, end: int | None) -> bytes:
    if own.folder is None:
        assert own.objects is not None
        store, key = open_store(own.objects), key_of(own.objects, name)
        content: bytes = store.cat_file(key, start=begin, end=end)
        return content
    with own.path(name).open("rb", buffering=0) as file:
        if begin is None or end is None:
            return file.read()
        file.seek(begin)
        return file.read(end - begin)
