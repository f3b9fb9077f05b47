"""Which bus bandwidths did nccl-tests print into this log?

Its columns: size, count, type, redop, root, then time, algbw, busbw and wrong out of place, and the
same four in place. Older versions and some collectives print no redop or no root. Source:
NVIDIA/nccl-tests src/common.cu.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from broadgauge.doctor.log.facts import ListedRank, Measured, Place
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
CUT_ROW = re.compile(
    rb"(?<!\S)\d{1,18}\s+\d{1,18}\s+(?:" + "|".join(sorted(_TYPES)).encode() + rb")\s.*NCCL "
)
"""A row into whose middle NCCL wrote: it goes on in the next line that is not NCCL's."""
_FIGURE = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
_AVERAGE = re.compile(rf"Avg bus bandwidth\s*:\s*(?P<busbw>{_FIGURE.pattern})")
_STARTING = re.compile(r"Collective test starting: (?P<program>\w+?)_perf")
_OPS = {"alltoall": "all_to_all", "sendrecv": "send_recv"}
_KEPT_CHARACTERS = 200
RANK_LINE = re.compile(
    r"#\s+Rank\s+(?P<rank>\d{1,7})(?:\s+Group\s+(?P<group>\d{1,9}))?\s+Pid\s+\d+ on\s+"
    r"(?P<host>\S+)\s+device\s+\d+ \[[^\]]*\]\s*(?P<gpu>.*?)\s*$"
)
"""Of its list of devices, one for each rank."""
_MOST_RANKS = 1 << 17
_ROUNDED = 0.02
"""GB/s; both are printed with two digits."""
_NEAR_RATIO = 0.01
_UNCHECKED = "N/A"
_NEVER_IN_PLACE = ("all_to_all", "send_recv")
_REDUCED = ("sum", "prod", "max", "min", "avg", "mulsum")


@dataclass(slots=True)
class NcclTests:
    """Takes in its lines, in their order."""

    measured: list[Measured] = field(default_factory=list)
    ranks: dict[int, ListedRank] = field(default_factory=dict)
    _op: str | None = None
    _begun: tuple[str, Place] | None = None
    """What stood before NCCL's words: a row, or the first part of one, which only what follows
    tells: a part may have as many columns as a row of an older version."""

    def take_before(self, text: str, place: Place) -> None:
        """Of a line of NCCL's: what stands before its words."""
        if _type_at(text.split()) is not None:
            self.end()
            self._begun = (text, place)

    def end(self) -> None:
        """Nothing follows on what was begun: is it a row by itself?"""
        begun, self._begun = self._begun, None
        if begun is not None:
            self._take_row(*begun)

    def take(self, text: str, place: Place) -> bool:
        """Is it a rank, a row, an average, or the name of a test? Any other line says nothing."""
        listed = RANK_LINE.search(text)
        if listed is not None:
            if len(self.ranks) < _MOST_RANKS:
                rank = ListedRank(host=listed["host"], gpu=listed["gpu"])
                self.ranks[int(listed["rank"])] = rank
            return True
        starting = _STARTING.search(text)
        if starting is not None:
            self._op = _OPS.get(starting["program"], starting["program"])
            return True
        average = _AVERAGE.search(text)
        if average is not None:
            self._keep(Measured(place, text, float(average["busbw"]), None, self._op))
            return True
        if self._begun is not None:
            whole = self._begun[0] + text
            if self._take_row(whole, place):
                self._begun = None
                return True
            self.end()
        return self._take_row(text, place)

    def _take_row(self, text: str, place: Place) -> bool:
        row = row_of(text)
        if row is None:
            return False
        ops = () if self._op is not None else ops_of_row(text, len(self.ranks))
        op = ops[0] if len(ops) == 1 else self._op
        self._keep(Measured(place, text, row[1], row[0], op, ops, _num_wrong(text.split())))
        return True

    def _keep(self, measured: Measured) -> None:
        if len(self.measured) < MOST_MEASURED:
            words = kept(measured.text)[:_KEPT_CHARACTERS]
            self.measured.append(measured._replace(text=words))


def ops_of_row(text: str, num_ranks: int) -> tuple[str, ...]:
    """Which collectives can this row be of, where no line names it? By its own columns.

    busbw over algbw is 2(n-1)/n of all_reduce, (n-1)/n of reduce_scatter, all_gather and
    all_to_all, 1 of broadcast, reduce and send_recv. Those with a root name it. all_to_all and
    send_recv are never checked in place, all others are where they are checked out of place.
    Source: NVIDIA/nccl-tests doc/PERFORMANCE.md and src/*.cu; send_recv prints `sum`.
    """
    words = text.split()
    at, figures = _type_at(words), _figures(words)
    if at is None or figures is None or num_ranks < 2:
        return ()
    algbw, busbw = figures
    ring = (num_ranks - 1) / num_ranks
    has_root = len(words) > at + 2 and words[at + 2].isdecimal()
    is_reduced = any(word in _REDUCED for word in words)
    found = [
        op
        for op, factor in _factors(ring, is_reduced=is_reduced, has_root=has_root)
        if abs(busbw - factor * algbw) <= _ROUNDED + _NEAR_RATIO * busbw
    ]
    checks = [word == _UNCHECKED for word in _wrong(words[at + 1 :])]
    if checks in ([False, True], [False, False]):
        is_never_in_place = checks[1]
        found = [op for op in found if (op in _NEVER_IN_PLACE) == is_never_in_place]
    return tuple(found)


def _factors(ring: float, *, is_reduced: bool, has_root: bool) -> tuple[tuple[str, float], ...]:
    """busbw over algbw of those that print such columns."""
    if has_root:
        return (("reduce", 1.0),) if is_reduced else (("broadcast", 1.0),)
    if is_reduced:
        return (("all_reduce", 2 * ring), ("reduce_scatter", ring), ("send_recv", 1.0))
    return (("all_gather", ring), ("all_to_all", ring), ("send_recv", 1.0))


def _num_wrong(words: Sequence[str]) -> int:
    """Before 2.13 the column is an error and no count, which is no whole number."""
    at = _type_at(words)
    cells = [] if at is None else _wrong(words[at + 1 :])
    return max((int(cell) for cell in cells if cell.isdecimal() and len(cell) <= 18), default=0)


def _wrong(cells: Sequence[str]) -> list[str]:
    """`#wrong` out of place and in place."""
    return [cells[-5], cells[-1]] if len(cells) >= 8 else []


def row_of(text: str) -> tuple[int, float] | None:
    """Size in bytes and busbw out of place, 10^9 byte/s; None: no row of a table.

    Whatever stands before the size, a timestamp or a pod's name, is passed over.
    """
    words = text.split()
    at = _type_at(words)
    figures = _figures(words)
    if at is None or figures is None or len(words[at - 2]) > 18:
        return None
    return int(words[at - 2]), figures[1]


def _type_at(words: Sequence[str]) -> int | None:
    """Where the element's type stands, behind size and count."""
    at = next((i for i, word in enumerate(words) if i >= 2 and word in _TYPES), None)
    if at is None or not (words[at - 2].isdecimal() and words[at - 1].isdecimal()):
        return None
    return at


def _figures(words: Sequence[str]) -> tuple[float, float] | None:
    """algbw and busbw out of place."""
    at = _type_at(words)
    if at is None:
        return None
    rest = list(words[at + 1 :])
    if rest and rest[0].isalpha():
        rest = rest[1:]
    if len(rest) in (5, 9):
        rest = rest[1:]
    if len(rest) not in (4, 8) or not all(map(_FIGURE.fullmatch, rest[1:3])):
        return None
    return float(rest[1]), float(rest[2])
