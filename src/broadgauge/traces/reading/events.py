"""What does one event of Kineto's JSON say? Decoded into structs that hold what is asked for.

Source: Trace Event Format (Google, 2016); keys of `args` as torch 2.8 to 2.11 write them
(kineto's output_json.cpp, torch's ParamCommsUtils.hpp).
"""

import json
import math
import re
from typing import Any

import msgspec

from broadgauge.traces.reading.chunks import NotJsonError

_NO_NUMBER = re.compile(r"(:\s*)-?(?:inf(?:inity)?|nan(?:\(\w*\))?)(?=\s*[,}])", re.IGNORECASE)
"""What C++ prints for a rate over no time; JSON has no such number."""


class EventArguments(msgspec.Struct, gc=False):
    """`args` of an event: of kernels their launch and place, of collectives what they send."""

    correlation: Any = None
    stream: Any = None
    grid: Any = None
    block: Any = None
    collective: Any = msgspec.field(default=None, name="Collective name")
    elements_in: Any = msgspec.field(default=None, name="In msg nelems")
    elements_out: Any = msgspec.field(default=None, name="Out msg nelems")
    group_size: Any = msgspec.field(default=None, name="Group size")
    dtype: Any = None
    group: Any = msgspec.field(default=None, name="Process Group Name")
    group_ranks: Any = msgspec.field(default=None, name="Process Group Ranks")


class TraceEvent(msgspec.Struct, gc=False):
    """One event; `ts` and `dur` in microseconds."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: float = math.nan
    dur: float = 0.0
    pid: Any = None
    tid: Any = None
    args: EventArguments | None = None


class EventDecoder:
    """Bytes of an array of events to structs; counts what could not be read."""

    def __init__(self) -> None:
        self._typed = msgspec.json.Decoder(list[TraceEvent])
        self._strict = msgspec.json.Decoder(list[Any])
        self.num_unreadable = 0

    def __call__(self, text: bytes) -> list[TraceEvent]:
        """Raises ValueError where the bytes are no JSON array; an odd event is left out."""
        try:
            try:
                return self._typed.decode(text)
            except msgspec.ValidationError:
                return self._one_by_one(self._strict.decode(text))
        except RecursionError as error:
            raise ValueError("nested too deeply") from error

    def repaired(self, text: bytes) -> list[TraceEvent]:
        """As above, for bytes that are none by a hair: `inf`, broken UTF-8, raw control characters.

        Slow, so it is asked last. Raises ValueError.
        """
        words = _NO_NUMBER.sub(r"\1null", text.decode("utf-8", "replace"))
        try:
            return self._one_by_one(json.loads(words, strict=False))
        except RecursionError as error:
            raise ValueError("nested too deeply") from error

    def _one_by_one(self, items: list[Any]) -> list[TraceEvent]:
        found = []
        for item in items:
            try:
                found.append(msgspec.convert(item, TraceEvent))
            except msgspec.ValidationError:
                self.num_unreadable += 1
        return found


class DistributedInfo(msgspec.Struct):
    """What the profiler knew of the job."""

    rank: Any = None
    world_size: Any = None


class TraceDocument(msgspec.Struct):
    """What stands beside the events."""

    distributed: DistributedInfo | None = msgspec.field(default=None, name="distributedInfo")
    devices: Any = msgspec.field(default=None, name="deviceProperties")


def decode_document(text: bytes) -> TraceDocument:
    """The document without its events. Raises NotJsonError."""
    try:
        return msgspec.json.decode(text, type=TraceDocument)
    except msgspec.ValidationError:
        return TraceDocument()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotJsonError(f"beside its events: {error}", 0) from error
