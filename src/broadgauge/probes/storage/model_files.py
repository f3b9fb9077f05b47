"""How is a model written for others to load, and opened as they open it?

By the libraries that users have: `safetensors`, `torch.save` and `torch.load`. Each way gives one
tensor after the other on the host.
"""

import os
import re
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import torch

from broadgauge.messages.storage import LoadPhase
from broadgauge.probes.storage.saving import TimedFile, in_the_systems_words
from broadgauge.probes.storage.stopwatch import Stopwatch
from broadgauge.probes.storage.timed_reading import ReadCalls
from broadgauge.probes.trial import RefusedError

SAFETENSORS, TORCH = "model.safetensors", "model.pt"
"""Names of the files."""


class OpenModel(ABC):
    """A file of weights, by a rank that reads it."""

    calls_count = 0
    """To the kernel, that read it; none where it is mapped."""

    @abstractmethod
    def tensor(self, name: str) -> Any:
        """On the host; of a mapped file nothing of it is read yet. Raises OSError."""


class _Mapped(OpenModel):
    """A safetensors file whose tensors are pages of it."""

    def __init__(self, path: Path) -> None:
        self._file = safetensors_library().safe_open(path, framework="pt", device="cpu")

    def tensor(self, name: str) -> Any:
        return self._file.get_tensor(name)


class _InMemory(OpenModel):
    """All tensors at once, or torch's mapped ones."""

    def __init__(self, tensors: dict[str, Any], calls_count: int) -> None:
        self._tensors, self.calls_count = tensors, calls_count

    def tensor(self, name: str) -> Any:
        return self._tensors.pop(name)


def write_model(phase: LoadPhase, path: Path, tensors: dict[str, Any]) -> None:
    """Raises OSError, and RefusedError where the format's library is not there."""
    if phase.format == "safetensors":
        save_safetensors(tensors, path)
    else:
        # A path would be torch's own to write to, which says of a full disk no number.
        with in_the_systems_words(), TimedFile(path) as file:
            torch.save(tensors, file)


def save_safetensors(tensors: dict[str, Any], path: Path) -> None:
    """Its error has the system's number in its words alone. Raises OSError, and RefusedError where
    the library is not there."""
    library = safetensors_library()
    try:
        library.torch.save_file(tensors, path)
    except library.SafetensorError as error:
        told = re.search(r"\(os error (\d+)\)", str(error))
        if told is None:
            raise
        number = int(told[1])
        raise OSError(number, os.strerror(number), str(path)) from error


def model_path(phase: LoadPhase, folder: Path) -> Path:
    return folder / (SAFETENSORS if phase.format == "safetensors" else TORCH)


def open_model(phase: LoadPhase, path: Path, watch: Stopwatch) -> OpenModel:
    """As its library is used; what is read whole is read here."""
    calls = ReadCalls()
    if phase.is_mapped:
        opened = _open_mapped(phase, path)
        watch.ends("open")
        return opened
    with calls.reading(path) as file:
        if phase.format == "safetensors":
            content = file.read()
            watch.ends("read")
            tensors = safetensors_library().torch.load(content)
            del content  # its memory, too
            watch.ends("deserialise")
        else:
            tensors = torch.load(file, weights_only=True, map_location="cpu")
            watch.ends("deserialise", read_s=calls.seconds)
    return _InMemory(tensors, calls.count)


def _open_mapped(phase: LoadPhase, path: Path) -> OpenModel:
    if phase.format == "safetensors":
        return _Mapped(path)
    return _InMemory(torch.load(path, weights_only=True, map_location="cpu", mmap=True), 0)


def safetensors_library() -> Any:
    """A rank's Python may be the user's own, with torch and without this. Raises RefusedError."""
    try:
        import safetensors
        import safetensors.torch
    except ImportError as error:
        raise RefusedError(
            f"`format: safetensors` needs the package safetensors on the ranks' Python: {error}"
        ) from error
    return safetensors
