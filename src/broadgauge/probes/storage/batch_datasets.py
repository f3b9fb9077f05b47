"""How is a sample found in its files? A data set of torch for each source, as trainings have them.

A sample is its number and its payload, uint8[sample_bytes]. Data sets are copied into workers, so
that no file is opened before a worker asks for a sample.
"""

import base64
import json
import os
from array import array
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, DistributedSampler

from broadgauge.messages.storage import BatchesPhase
from broadgauge.messages.vocabulary import assert_never
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.storage.batch_files import LINES, PLACES, file_of, tar_files

Sample = tuple[int, torch.Tensor]
BUFFERED_SAMPLES = 1000
"""Of which WebDataset draws the next one. Source: its FAQ, `.shuffle(1000)`."""


class LinesDataset:
    """JSON lines: each is found by its place in the file."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError."""
        self.path = folder / LINES
        self.places = array("q", (folder / PLACES).read_bytes())
        self.fd: int | None = None

    def __len__(self) -> int:
        return len(self.places) - 1

    def __getitem__(self, number: int) -> Sample:
        if self.fd is None:
            self.fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        begin, end = self.places[number], self.places[number + 1]
        record = json.loads(os.pread(self.fd, end - begin, begin))
        return record["number"], as_tensor(base64.b64decode(record["payload"]))

    def __del__(self) -> None:
        if self.fd is not None:
            os.close(self.fd)


class FilesDataset:
    """A file a sample, found by its name."""

    def __init__(self, folder: Path, samples: int) -> None:
        self.folder, self.samples = folder, samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, number: int) -> Sample:
        with file_of(self.folder, number).open("rb", buffering=0) as file:
            return number, as_tensor(file.read())


class ArrowDataset:
    """A data set of Hugging Face's, mapped into memory: read where a page of it is touched."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError."""
        import datasets

        parts = [
            datasets.load_from_disk(str(part), keep_in_memory=False)
            for part in sorted(folder.iterdir())
        ]
        self.rows: Any = datasets.concatenate_datasets(parts)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> Sample:
        (sample,) = self.__getitems__([number])
        return sample

    def __getitems__(self, numbers: list[int]) -> list[Sample]:
        """A batch at once, as DataLoader asks for it where a data set can."""
        columns = self.rows[numbers]
        return list(zip(columns["number"], map(as_tensor, columns["payload"]), strict=True))


def loader_of(
    folder: Path, phase: BatchesPhase, identity: RankIdentity, *, epoch: int, seed: int
) -> "DataLoader[Any]":
    """Of this rank's share in an epoch; batches are int64[batch] and uint8[batch, sample_bytes].

    Its workers live until it is dropped, so that what the kernel counted of them can be read when
    the last batch is there. Raises OSError.
    """
    options: dict[str, Any] = {"batch_size": phase.batch_per_rank, "num_workers": phase.workers}
    if phase.workers:
        options |= {"prefetch_factor": phase.prefetch, "persistent_workers": True}
    if phase.source == "webdataset":
        return DataLoader(_tar_dataset(folder, phase, identity, seed + epoch), **options)
    dataset = _dataset(folder, phase)
    sampler = DistributedSampler(
        dataset, identity.world_size, identity.rank, shuffle=phase.is_shuffled, seed=seed
    )
    sampler.set_epoch(epoch)
    return DataLoader(dataset, sampler=sampler, **options)


def readers_of(phase: BatchesPhase, world_size: int) -> int:
    """How many processes read, on all ranks?"""
    return world_size * max(1, phase.workers)


def as_tensor(payload: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(payload), dtype=torch.uint8)


def _dataset(folder: Path, phase: BatchesPhase) -> LinesDataset | FilesDataset | ArrowDataset:
    match phase.source:
        case "jsonl":
            return LinesDataset(folder)
        case "files":
            return FilesDataset(folder, phase.samples)
        case "arrow":
            return ArrowDataset(folder)
        case "webdataset":
            raise AssertionError(phase)
        case unknown:
            assert_never(unknown)


def _tar_dataset(folder: Path, phase: BatchesPhase, identity: RankIdentity, seed: int) -> Any:
    """The ranks share the files out, and then each its own among its workers."""
    import webdataset

    paths = tar_files(folder, phase, readers_of(phase, identity.world_size))
    found = webdataset.WebDataset(
        [str(path) for path in paths],
        shardshuffle=len(paths) if phase.is_shuffled else False,
        nodesplitter=webdataset.split_by_node,
        workersplitter=webdataset.split_by_worker,
        seed=seed,
    )
    if phase.is_shuffled:
        found = found.shuffle(BUFFERED_SAMPLES, seed=seed)
    return found.map(_sample_of)


def _sample_of(member: dict[str, Any]) -> Sample:
    return int(member["__key__"]), as_tensor(member["bin"])
