"""What did each rank of a node write? torchrun puts it into files, and they are read as they grow.

So that ranks are not mixed: a metric is of one rank, and a traceback is whole. All of it goes into
the node's log, each line behind its rank where the node has several.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broadgauge.messages.tasks import MetricSource
from broadgauge.probes.command_output import LineSplitter, SampleReader
from broadgauge.probes.metric_files import Seen, numbers_left

_MOST_BYTES = 1 << 20
"""Read of one file at a time."""
_LONGEST_HELD = 16_384
"""A line that does not end is passed on in pieces."""
_LOOKS_FOR_ATTEMPTS = 20
"""Where all ranks have their files, every so many looks is also for those of another attempt."""

PassOn = Callable[[bytes], None]


@dataclass(slots=True, kw_only=True)
class _Stream:
    """One file of one rank's."""

    path: Path
    reader: SampleReader
    prefix: bytes
    lines: LineSplitter = field(default_factory=LineSplitter)
    offset: int = 0
    held: bytes = b""
    """A line whose end has not come, where lines have prefixes."""

    def read(self, pass_on: PassOn) -> bool:
        """Was there anything new?"""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                data = file.read(_MOST_BYTES)
        except OSError:
            return False
        self.offset += len(data)
        if data:
            self._pass(data, pass_on)
            for line in self.lines.feed(data):
                self.reader.feed(line)
        return bool(data)

    def _pass(self, data: bytes, pass_on: PassOn) -> None:
        if not self.prefix:
            pass_on(data)
            return
        *whole, self.held = (self.held + data).split(b"\n")
        if len(self.held) > _LONGEST_HELD:
            whole, self.held = [*whole, self.held], b""
        if whole:
            pass_on(b"".join(self.prefix + line + b"\n" for line in whole))

    def finish(self, pass_on: PassOn) -> None:
        if self.held:
            pass_on(self.prefix + self.held + b"\n")
        for line in self.lines.finish():
            self.reader.feed(line)


class CommandStreams:
    """All that torchrun and its ranks on this node write."""

    def __init__(
        self,
        metrics: tuple[MetricSource, ...],
        ranks: Sequence[int],
        folder: Path,
        pass_on: PassOn,
    ) -> None:
        """`ranks`: of this node, in the world, by local rank. `folder`: torchrun's log folder."""
        self.ranks = tuple(ranks)
        self.torchrun = SampleReader(metrics)
        """Of what torchrun itself writes, and its ranks where they are not redirected."""
        self.readers = {rank: SampleReader(metrics) for rank in ranks}
        self._folder = folder
        self._pass_on = pass_on
        self._lines = LineSplitter()
        self._streams: dict[Path, _Stream] = {}
        self._num_samples = 0
        self._num_looks = 0

    def take(self, data: bytes) -> None:
        """From torchrun's own pipe."""
        self._pass_on(data)
        for line in self._lines.feed(data):
            self.torchrun.feed(line)

    def read(self) -> bool:
        """What the ranks have written since. Was there anything?"""
        self._find()
        has_more = [stream.read(self._pass_on) for stream in self._streams.values()]
        return any(has_more)

    def finish(self) -> None:
        """All has been written."""
        while self.read():
            pass
        for stream in self._streams.values():
            stream.finish(self._pass_on)
        for line in self._lines.finish():
            self.torchrun.feed(line)

    def take_files(self, metrics: tuple[MetricSource, ...], folder: Path, before: Seen) -> None:
        """What metrics are read from files: the node's first rank is said to have left them."""
        for metric in metrics:
            if metric.file is not None:
                found = numbers_left(metric, folder, before)
                self.readers[self.ranks[0]].take_found(metric.name, found)

    def remove(self) -> None:
        """The copies: the node's log has it all."""
        for path in self._streams:
            path.unlink(missing_ok=True)

    def new_samples(self) -> int:
        """How many came since this was asked last, of the rank that printed most?"""
        readers = (self.torchrun, *self.readers.values())
        before, self._num_samples = self._num_samples, max(each.num_samples for each in readers)
        return self._num_samples - before

    def reader_of(self, metric: str) -> tuple[int, SampleReader]:
        """The first rank that printed this metric; the first of all where none did."""
        readers = [*self.readers.items(), (self.ranks[0], self.torchrun)]
        return next((pair for pair in readers if pair[1].samples[metric]), readers[0])

    def last_lines(self, rank: int) -> list[str]:
        """Of this rank; of torchrun's where it wrote nothing that was redirected."""
        return list(self.readers[rank].last_lines) or list(self.torchrun.last_lines)

    def _find(self) -> None:
        """Files appear as ranks start; each attempt of torchrun's has its own."""
        self._num_looks += 1
        is_whole = len(self._streams) >= 2 * len(self.ranks)
        if is_whole and self._num_looks % _LOOKS_FOR_ATTEMPTS:
            return
        for path in sorted(self._folder.glob("*/attempt_*/*/std*.log")):
            local = path.parent.name
            if path in self._streams or not local.isdigit() or int(local) >= len(self.ranks):
                continue
            rank = self.ranks[int(local)]
            prefix = b"" if len(self.ranks) == 1 else f"[rank {rank}] ".encode()
            self._streams[path] = _Stream(path=path, reader=self.readers[rank], prefix=prefix)
