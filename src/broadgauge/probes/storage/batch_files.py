"""Which files hold the samples of an epoch, and what is in them?

A sample's payload follows from its number alone, so that every rank can tell whether it got what
was written.
"""

import base64
import importlib.util
import io
import json
import random
import tarfile
from array import array
from collections.abc import Iterator
from pathlib import Path

from broadgauge.messages.storage import BatchesPhase, BatchSource
from broadgauge.messages.vocabulary import assert_never
from broadgauge.probes.trial import RefusedError

PACKAGES: dict[BatchSource, str] = {"arrow": "datasets", "webdataset": "webdataset"}
"""That read a source; the others need none beside torch."""
FILES_OF_FOLDER = 1000
PART_BYTES = 64 << 20
"""Of samples in one file of a source that has several."""
LINES, PLACES = "samples.jsonl", "places"
"""The file of lines, and the offset of each: int64[samples + 1], the last one its end."""


def refuse_missing_package(source: BatchSource) -> None:
    """Raises RefusedError."""
    package = PACKAGES.get(source)
    if package is not None and importlib.util.find_spec(package) is None:
        raise RefusedError(
            f"`source: {source}` needs the package `{package}`, which the ranks' Python does not "
            f"have: `pip install {package}` there, or another `source`"
        )


def payload_of(number: int, size_bytes: int) -> bytes:
    return random.Random(number).randbytes(size_bytes)


def file_of(folder: Path, number: int) -> Path:
    """Of `source: files`."""
    return folder / f"{number // FILES_OF_FOLDER:05d}" / f"{number:08d}.bin"


def tar_files(folder: Path, phase: BatchesPhase, readers: int) -> list[Path]:
    """As many for each reader: a worker of a rank, or a rank without workers."""
    of_reader = -(-phase.samples * phase.sample_bytes // (readers * PART_BYTES))
    count = readers * max(1, min(of_reader, phase.samples // readers))
    return [folder / f"{number:06d}.tar" for number in range(count)]


def write_samples(folder: Path, phase: BatchesPhase, readers: int) -> None:
    """Into an empty folder. `readers`: workers of all ranks. Raises OSError."""
    match phase.source:
        case "jsonl":
            _write_lines(folder, phase)
        case "files":
            for number in range(phase.samples):
                path = file_of(folder, number)
                if number % FILES_OF_FOLDER == 0:
                    path.parent.mkdir()
                path.write_bytes(payload_of(number, phase.sample_bytes))
        case "arrow":
            _write_arrow(folder, phase)
        case "webdataset":
            paths = tar_files(folder, phase, readers)
            for number, path in enumerate(paths):
                _write_tar(path, phase, _part(phase.samples, number, len(paths)))
        case unknown:
            assert_never(unknown)


def _part(samples: int, number: int, parts: int) -> range:
    """Numbers of the samples in one of the parts, which differ by one sample at most."""
    return range(samples * number // parts, samples * (number + 1) // parts)


def _write_lines(folder: Path, phase: BatchesPhase) -> None:
    places = array("q", [0])
    with (folder / LINES).open("wb") as file:
        for number in range(phase.samples):
            text = base64.b64encode(payload_of(number, phase.sample_bytes)).decode()
            line = json.dumps({"number": number, "payload": text}).encode() + b"\n"
            file.write(line)
            places.append(places[-1] + len(line))
    (folder / PLACES).write_bytes(places.tobytes())


def _write_arrow(folder: Path, phase: BatchesPhase) -> None:
    """In parts: one is in memory at a time."""
    import datasets

    datasets.disable_progress_bars()
    for part, numbers in enumerate(_arrow_parts(phase)):
        payloads = [payload_of(number, phase.sample_bytes) for number in numbers]
        columns = {"number": list(numbers), "payload": payloads}
        datasets.Dataset.from_dict(columns).save_to_disk(str(folder / f"{part:06d}"))


def _arrow_parts(phase: BatchesPhase) -> Iterator[range]:
    parts = -(-phase.samples * phase.sample_bytes // PART_BYTES)
    for number in range(min(parts, phase.samples)):
        yield _part(phase.samples, number, min(parts, phase.samples))


def _write_tar(path: Path, phase: BatchesPhase, numbers: range) -> None:
    with tarfile.open(path, "w") as tar:
        for number in numbers:
            member = tarfile.TarInfo(f"{number:08d}.bin")
            member.size = phase.sample_bytes
            tar.addfile(member, io.BytesIO(payload_of(number, phase.sample_bytes)))
