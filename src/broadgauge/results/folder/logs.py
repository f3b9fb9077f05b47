"""What did the ranks of a run write, launch by launch, also while it goes on?"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from broadgauge.results.folder import disk
from broadgauge.results.folder.run_folder import LOGS_FOLDER
from broadgauge.specs.plan import Plan

_LOG = re.compile(r"(?P<launch>(?P<planned>b\d+\.l\d+)(?:r(?P<life>\d+))?)\.rank(?P<rank>\d+)\.log")
_CHUNK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 1 << 20
"""A line that does not end is passed on in pieces of this."""

POD_LOG = ".pod0.log"
"""How the name of a file with a pod's own words ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLog:
    """The file of one rank in one life of a launch."""

    launch_id: str
    rank: int
    path: Path
    place: tuple[int, int]
    """Of its launch in the plan's order, and which life of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    log: RankLog
    text: str
    """Without its end."""


def find_logs(folder: Path, plan: Plan) -> tuple[RankLog, ...]:
    """Every rank's log, in the order in which the launches ran, by rank."""
    order = {launch.launch_id: place for place, launch in enumerate(plan.launches)}
    logs = folder / LOGS_FOLDER
    if not logs.is_dir():
        return ()
    found = []
    with disk.telling("read", logs):
        for path in logs.iterdir():
            match = _LOG.fullmatch(path.name)
            if match is None or match["planned"] not in order or not path.is_file():
                continue
            place = (order[match["planned"]], int(match["life"] or 0))
            found.append(
                RankLog(launch_id=match["launch"], rank=int(match["rank"]), path=path, place=place)
            )
    return tuple(sorted(found, key=lambda log: (log.place, log.rank)))


class Tail:
    """Reads what was added to files since it looked last."""

    def __init__(self) -> None:
        self._offsets: dict[Path, int] = {}
        self._partial: dict[Path, bytes] = {}

    def new_lines(self, log: RankLog) -> Iterator[Line]:
        """The whole lines since then. A file that is gone has none."""
        try:
            with log.path.open("rb") as file:
                file.seek(self._offsets.get(log.path, 0))
                while chunk := file.read(_CHUNK_BYTES):
                    self._offsets[log.path] = self._offsets.get(log.path, 0) + len(chunk)
                    yield from self._whole(log, chunk)
        except FileNotFoundError:
            return

    def rest(self, log: RankLog) -> Iterator[Line]:
        """The last line where it has no end."""
        partial = self._partial.pop(log.path, b"")
        if partial:
            yield _line(log, partial)

    def _whole(self, log: RankLog, chunk: bytes) -> Iterator[Line]:
        *whole, partial = (self._partial.get(log.path, b"") + chunk).split(b"\n")
        for line in whole:
            yield _line(log, line)
        while len(partial) > LONGEST_LINE_BYTES:
            yield _line(log, partial[:LONGEST_LINE_BYTES])
            partial = partial[LONGEST_LINE_BYTES:]
        self._partial[log.path] = partial


def _line(log: RankLog, data: bytes) -> Line:
    return Line(log=log, text=data.removesuffix(b"\r").decode("utf-8", errors="replace"))


def follow(
    find: Callable[[], Sequence[RankLog]],
    is_running: Callable[[], bool],
    wait: Callable[[], None],
) -> Iterator[Line]:
    """Every line of these logs, and of those that appear, until the run has ended.

    Whether it runs is asked before its files are read, so nothing that it wrote last is missed.
    """
    tail = Tail()
    while True:
        goes_on = is_running()
        logs = find()
        newest = max((log.place for log in logs), default=(0, 0))
        for log in logs:
            yield from tail.new_lines(log)
            if log.place < newest or not goes_on:
                yield from tail.rest(log)
        if not goes_on:
            return
        wait()


def pod_logs(folder: Path) -> tuple[Path, ...]:
    """What the first pod of each job said beside its events, oldest job first."""
    found = (folder / LOGS_FOLDER).glob(f"*{POD_LOG}")
    return tuple(sorted(found, key=lambda path: path.stat().st_mtime))


def by_launch(logs: Sequence[RankLog]) -> Mapping[str, Sequence[RankLog]]:
    """Launch → its ranks' logs, in the order given."""
    groups: dict[str, list[RankLog]] = {}
    for log in logs:
        groups.setdefault(log.launch_id, []).append(log)
    return groups


def harmless(text: str) -> str:
    """What a terminal may be shown: no control character, no escape sequence, no hidden character.

    Of a line that was drawn over with carriage returns, its last state.
    """
    drawn = text.rsplit("\r", 1)[-1]
    return "".join(
        each if each.isprintable() or each == "\t" else each.encode("unicode_escape").decode()
        for each in drawn
    )
