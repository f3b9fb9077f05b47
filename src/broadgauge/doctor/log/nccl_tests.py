"""Which bus bandwidths did nccl-tests print into this log?

Its columns: size, count, type, redop, root, then time, algbw, busbw and wrong out of place, and the
same four in place. Older versions and some collectives print no redop or no root. Source:
NVIDIA/nccl-tests src/common.cu.
"""

import re
from dataclasses import dataclass, field

from broadgauge.doctor.log.facts import Measured, Place
from broadgauge.doctor.log.masking import kept

TABLE = b"out-of-place"
"""Stands above each of its tables; without it a log has none."""
STARTING = b"Collective test starting"
"""Stands above the table, and names what is tested."""
TRIGGERS = (b"Avg bus bandwidth", b" sum ", b" none ", b" avg ")
"""What its lines hold; looked for from the first table on."""
MOST_MEASURED = 1000
_TYPES = frozenset(
    {
        *("int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double"),
        *("bfloat16", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"),
    }
)
_FIGURE = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
_AVERAGE = re.compile(rf"Avg bus bandwidth\s*:\s*(?P<busbw>{_FIGURE.pattern})")
_STARTING = re.compile(r"Collective test starting: (?P<program>\w+?)_perf")
_OPS = {"alltoall": "all_to_all", "sendrecv": "send_recv"}
_KEPT_CHARACTERS = 200


@dataclass(slots=True)
class NcclTests:
    """Takes in its lines, in their order."""

    measured: list[Measured] = field(default_factory=list)
    _op: str | None = None

    def take(self, text: str, place: Place) -> bool:
        """Is it a row, an average, or the name of a test? Any other line says nothing."""
        starting = _STARTING.search(text)
        if starting is not None:
            self._op = _OPS.get(starting["program"], starting["program"])
            return True
        average = _AVERAGE.search(text)
        if average is not None:
            self._keep(text, place, float(average["busbw"]), None)
            return True
        row = row_of(text)
        if row is None:
            return False
        self._keep(text, place, row[1], row[0])
        return True

    def _keep(self, text: str, place: Place, busbw: float, size_bytes: int | None) -> None:
        if len(self.measured) < MOST_MEASURED:
            words = kept(text)[:_KEPT_CHARACTERS]
            self.measured.append(Measured(place, words, busbw, size_bytes, self._op))


def row_of(text: str) -> tuple[int, float] | None:
    """Size in bytes and busbw out of place, 10^9 byte/s; None: no row of a table.

    Whatever stands before the size, a timestamp or a pod's name, is passed over.
    """
    words = text.split()
    at = next((i for i, word in enumerate(words) if i >= 2 and word in _TYPES), None)
    if at is None or not (words[at - 2].isdecimal() and words[at - 1].isdecimal()):
        return None
    rest = words[at + 1 :]
    if rest and rest[0].isalpha():
        rest = rest[1:]
    if len(rest) in (5, 9):
        rest = rest[1:]
    if len(rest) not in (4, 8):
        return None
    if len(words[at - 2]) > 18 or _FIGURE.fullmatch(rest[2]) is None:
        return None
    return int(words[at - 2]), float(rest[2])
