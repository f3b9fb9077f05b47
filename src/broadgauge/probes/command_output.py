"""Which numbers did the user's command print?

Lines may be cut, endless or no text at all: memory stays bounded whatever is printed.
"""

import json
import math
import re
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from broadgauge.messages.tasks import MetricSource
from broadgauge.messages.vocabulary import Comma
from broadgauge.probes.metric_files import FoundNumbers

MAX_LINE_BYTES = 16_384
"""Of a longer line the first part is read and the rest is skipped, up to its end."""
MAX_SAMPLES = 100_000
"""Of all metrics together: a message of them is below its limit (messages/frames.py)."""
LAST_LINES = 400
"""A traceback is found in them."""
LAST_LINE_CHARACTERS = 500
_LINE_END = re.compile(rb"[\r\n]")
_TORCHRUN_FAILURE = re.compile(
    r"torch/distributed/elastic/.*failed \(exitcode: (-?\d+)\) local_rank: (\d+)"
)
"""Source: torch/distributed/elastic/multiprocessing/api.py, `PContext.wait`, torch 2.11."""
_FAILED_RANK = re.compile(r"^\s*rank\s*: \d+ \(local_rank: (\d+)\)")
_FAILED_CODE = re.compile(r"^\s*exitcode\s*: (-?\d+)")
"""Source: torch/distributed/elastic/multiprocessing/errors, `ChildFailedError`, torch 2.11."""
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_DIGITS = re.compile(r"[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?", re.ASCII)
_EXCHANGED = str.maketrans(",.", ".,")


LARGEST = 1e100
"""No measurement is larger; sums of larger ones overflow."""


class LineSplitter:
    """Feed bytes as they come, get lines. A carriage return ends one too: progress bars."""

    def __init__(self) -> None:
        self._pending = b""
        self._is_skipping = False

    def feed(self, data: bytes) -> list[str]:
        lines = []
        *complete, rest = _LINE_END.split(self._pending + data)
        for line in complete:
            if not self._is_skipping and line:
                lines.append(_text(line))
            self._is_skipping = False
        if self._is_skipping:
            rest = b""
        elif len(rest) > MAX_LINE_BYTES:
            lines.append(_text(rest))
            self._is_skipping, rest = True, b""
        self._pending = rest
        return lines

    def finish(self) -> list[str]:
        """The last line, when no line end came after it."""
        return self.feed(b"\n")


class SampleReader:
    """Feed lines, get the samples of each metric, the notes about them and the last lines."""

    def __init__(
        self, metrics: tuple[MetricSource, ...], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._metrics = metrics
        self._most_a_metric = MAX_SAMPLES // len(metrics)
        self._samples: dict[str, list[float]] = {metric.name: [] for metric in metrics}
        self._ignored: dict[str, int] = {metric.name: 0 for metric in metrics}
        self._ambiguous: dict[str, int] = {metric.name: 0 for metric in metrics}
        self._first_ambiguous: dict[str, str] = {}
        self._seen: dict[str, int] = {metric.name: 0 for metric in metrics}
        self._seen_at_s: dict[str, list[float]] = {metric.name: [] for metric in metrics}
        self.first_seen_s: dict[str, float] = {}
        """By metric: when the first was printed, skipped ones too."""
        self._clock = clock
        self._begin_s = clock()
        self._why: dict[str, str] = {}
        """Of metrics that are read from files: what kept us from reading on."""
        self.rank_exit_code: int | None = None
        """Of the first rank that torchrun saw fail; a signal's number is negative."""
        self.failed_local_rank: int | None = None
        """That rank: the first that was seen, which needn't be the first that failed."""
        self.exit_codes: dict[int, int] = {}
        """By local rank, of all that had failed when torchrun ended the others."""
        self._listed_rank: int | None = None
        self.last_lines: deque[str] = deque(maxlen=LAST_LINES)
        """Up to that failure: what torchrun writes of it is long and says no more."""

    @property
    def num_samples(self) -> int:
        return sum(map(len, self._samples.values()))

    def num_samples_of(self, metric: str) -> int:
        return len(self._samples[metric])

    def feed(self, line: str) -> None:
        if self.rank_exit_code is None:
            self.last_lines.append(line[:LAST_LINE_CHARACTERS])
            if match := _TORCHRUN_FAILURE.search(line):
                self.rank_exit_code, self.failed_local_rank = int(match[1]), int(match[2])
        else:
            self._read_summary(line)
        for metric in self._metrics:
            for value in numbers_in(line, metric):
                if isinstance(value, str):
                    self._ambiguous[metric.name] += 1
                    self._first_ambiguous.setdefault(metric.name, value)
                else:
                    self._take(metric, value, at_s=self._clock() - self._begin_s)

    def take_found(self, name: str, found: FoundNumbers) -> None:
        """What a file had of this metric."""
        metric = next(metric for metric in self._metrics if metric.name == name)
        for value in found.values:
            self._take(metric, value)
        if found.why is not None:
            self._why[name] = found.why

    def _read_summary(self, line: str) -> None:
        if match := _FAILED_RANK.match(line):
            self._listed_rank = int(match[1])
        elif self._listed_rank is not None and (match := _FAILED_CODE.match(line)):
            self.exit_codes[self._listed_rank] = int(match[1])

    @property
    def samples(self) -> dict[str, tuple[float, ...]]:
        return {name: tuple(values) for name, values in self._samples.items()}

    @property
    def seen_at_s(self) -> dict[str, tuple[float, ...]]:
        """Of printed metrics, to a hundredth of a second: longer than between two looks."""
        return {name: tuple(times) for name, times in self._seen_at_s.items() if times}

    @property
    def notes(self) -> tuple[str, ...]:
        notes = [
            f"metric `{name}`: {count} number(s) not finite, left out"
            for name, count in self._ignored.items()
            if count
        ]
        notes += [
            f"metric `{name}`: {self._ambiguous_words(name)}, left out"
            for name in self._first_ambiguous
        ]
        notes += [f"metric `{name}`: {why}" for name, why in self._why.items()]
        notes += [
            f"metric `{metric.name}`: only the first {self._most_a_metric} of "
            f"{self._seen[metric.name] - metric.skip_first} samples are kept"
            for metric in self._metrics
            if self._seen[metric.name] - metric.skip_first > self._most_a_metric
        ]
        return tuple(notes)

    def missing(self) -> dict[str, str]:
        """Which metrics have no sample, each in a sentence?"""
        return {
            metric.name: self._why_missing(metric)
            for metric in self._metrics
            if not self._samples[metric.name]
        }

    def _why_missing(self, metric: MetricSource) -> str:
        if metric.name in self._first_ambiguous:
            return f"metric `{metric.name}`: {self._ambiguous_words(metric.name)}"
        skipped = self._seen[metric.name]
        after = f" after the {skipped} that `skip_first` leaves out" if skipped else ""
        if metric.name in self._why:
            source = self._why[metric.name]
        elif metric.regex is not None:
            source = f"the regex `{metric.regex}` matched no number"
        elif metric.json_key is not None:
            source = f"no JSON line had a number under `{metric.json_key}`"
        else:
            source = "its file had no number"
        return f"metric `{metric.name}`: {source}{after}"

    def _ambiguous_words(self, name: str) -> str:
        return (
            f"{self._ambiguous[name]} number(s), such as `{self._first_ambiguous[name]}`, may mean "
            "two things (`comma: thousands` or `comma: decimal` says which)"
        )

    def _take(self, metric: MetricSource, value: float, *, at_s: float | None = None) -> None:
        """`at_s`: when it was printed; None: it is from a file."""
        if not abs(value) <= LARGEST:  # nan too
            self._ignored[metric.name] += 1
            return
        self._seen[metric.name] += 1
        if at_s is not None:
            self.first_seen_s.setdefault(metric.name, round(at_s, 2))
        samples = self._samples[metric.name]
        if self._seen[metric.name] > metric.skip_first and len(samples) < self._most_a_metric:
            samples.append(value * metric.scale)
            if at_s is not None:
                self._seen_at_s[metric.name].append(round(at_s, 2))


def numbers_in(line: str, metric: MetricSource) -> list[float | str]:
    """What does this line say of this metric? NaN and infinity are passed on as they are.

    A text is a number that its comma makes ambiguous: `1,234` may be 1.234.
    """
    if metric.regex is not None:
        texts = [match[1] for match in re.finditer(metric.regex, line)]
        numbers = [_number(text, metric.comma) for text in texts if text is not None]
        return [number for number in numbers if number is not None]
    if metric.json_key is None:  # it is read from a file
        return []
    value = _json_value(line, metric.json_key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    try:
        return [float(value)]
    except OverflowError:
        return [math.inf]


def _json_value(line: str, key: str) -> Any:
    """Dots step into objects. Words may stand before the object, such as a log's time."""
    start = line.find("{")
    if start < 0:
        return None
    try:
        value = json.loads(line[start:])
    except (ValueError, RecursionError):
        return None
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _number(text: str, comma: Comma | None) -> float | str | None:
    """A number, where the text can be only one: `1,234,567` and `1,234.5` group thousands, `1,234`
    groups them or not. Else the text, if its comma is to blame; None: no number at all."""
    text = text.strip().rstrip(",")  # one behind a number belongs to the sentence
    written = text.translate(_EXCHANGED) if comma == "decimal" else text
    if "," in written:
        is_one_group = written.count(",") == 1 and "." not in written
        if not _GROUPED.fullmatch(written) or (comma is None and is_one_group):
            return text if _DIGITS.fullmatch(text) else None
    try:
        return float(written.replace(",", ""))
    except ValueError:
        return None


def _text(line: bytes) -> str:
    return line[:MAX_LINE_BYTES].decode(errors="replace")
