"""How does a model get out of its files into the memory in which ranks hold it, and into which
parts does the time fall on this rank?

Tensor by tensor, as trainers load: every rank reads the file and takes what it holds; or rank 0
reads and sends each tensor whole, of which the others keep their part. Source of the latter:
Accelerate 1.15, `fsdp2_load_full_state_dict`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from broadgauge.messages.storage import LoadPhase
from broadgauge.probes.devices import Device
from broadgauge.probes.storage.held_model import RandomBits
from broadgauge.probes.storage.model_files import model_path, open_model, write_model
from broadgauge.probes.storage.stopwatch import Stopwatch, Timed
from broadgauge.probes.storage.training_state import is_same
from broadgauge.probes.training.shards import own_part, own_part_of, set_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded(Timed):
    """On this rank."""

    needed_bytes: int
    """Of the files, by what this rank holds or sends."""


class Loader(ABC):
    """One way to load a model into the parameters that this rank holds."""

    def __init__(self, model: Any, phase: LoadPhase, device: Device, bits: RandomBits) -> None:
        """`bits`: what the files hold, of which each rank knows all."""
        self.model, self.phase, self.device, self.bits = model, phase, device, bits

    @abstractmethod
    def write(self, folder: Path, *, is_writer: bool) -> None:
        """The files, durable or not. All ranks call it together. Raises OSError."""

    @abstractmethod
    def files(self, folder: Path) -> list[Path]:
        """That ranks read."""

    @abstractmethod
    def load(self, folder: Path) -> Loaded:
        """All ranks call it together. Raises OSError."""

    def forget(self) -> None:
        """Puts zeros in the place of the weights."""
        with torch.no_grad():
            for parameter in self.model.parameters():
                own_part(parameter).zero_()

    def is_loaded(self) -> bool:
        """Is every bit of what this rank holds that of the files?"""
        return all(
            is_same(own_part(parameter), own_part_of(self._whole(number, parameter), parameter))
            for number, parameter in enumerate(self.model.parameters())
        )

    def _whole(self, number: int, parameter: Any) -> Any:
        """What the files hold of the parameter of this number, on the host."""
        return self.bits.tensor(parameter.shape, parameter.dtype, number)

    def _fill(self) -> None:
        """The parameters with what the files are to hold."""
        with torch.no_grad():
            for number, parameter in enumerate(self.model.parameters()):
                set_whole(parameter, self._whole(number, parameter).to(parameter.device))


class OneFileLoader(Loader):
    """A file of all weights."""

    def write(self, folder: Path, *, is_writer: bool) -> None:
        if is_writer:
            named = enumerate(self.model.named_parameters())
            tensors = {name: self._whole(number, each) for number, (name, each) in named}
            write_model(self.phase, model_path(self.phase, folder), tensors)

    def files(self, folder: Path) -> list[Path]:
        return [model_path(self.phase, folder)]

    def load(self, folder: Path) -> Loaded:
        watch = Stopwatch()
        needed_bytes, opened = 0, None
        if self._reads:
            opened = open_model(self.phase, model_path(self.phase, folder), watch)
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                whole = None if opened is None else opened.tensor(name)
                needed_bytes += self._take(parameter, whole, watch)
                del whole  # a mapped one keeps its file open
                watch.ends("close")
        calls_count = 0 if opened is None else opened.calls_count
        del opened
        watch.ends("close")
        return Loaded(
            parts_s=watch.parts_s, operations_count=calls_count, needed_bytes=needed_bytes
        )

    @property
    def _reads(self) -> bool:
        return not self.phase.is_broadcast or dist.get_rank() == 0

    def _take(self, parameter: Any, whole: Any, watch: Stopwatch) -> int:
        """This rank's part of a tensor that it has read, or is sent. Bytes of the file that it
        needed for it."""
        if self.phase.is_broadcast:
            needed_bytes = 0 if whole is None else whole.nbytes
            whole = self._sent(parameter, whole, watch)
            own_part(parameter).copy_(own_part_of(whole, parameter))
            self._ends("copy", watch)
            return needed_bytes
        part = own_part_of(whole, parameter)
        own_part(parameter).copy_(part)
        self._ends("read" if self.phase.is_mapped else "copy", watch)
        return int(part.nbytes if self.phase.is_mapped else whole.nbytes)

    def _sent(self, parameter: Any, whole: Any, watch: Stopwatch) -> Any:
        """The whole tensor on each rank's device."""
        if whole is None:
            whole = torch.empty(parameter.shape, dtype=parameter.dtype, device=parameter.device)
        elif self.phase.is_mapped:
            # Its pages are read here, and not while it is sent.
            whole = torch.empty_like(whole, device=parameter.device).copy_(whole)
            self._ends("read", watch)
        elif whole.device != parameter.device:
            whole = whole.to(parameter.device)
            self._ends("copy", watch)
        if dist.get_world_size() > 1:
            dist.broadcast(whole, src=0)
            self._ends("broadcast", watch)
        return whole

    def _ends(self, part: str, watch: Stopwatch) -> None:
        self.device.synchronize()
        watch.ends(part)
