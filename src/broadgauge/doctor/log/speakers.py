"""Who said it, in words: ranks where they are known, else hosts and processes."""

from collections.abc import Iterable, Sequence

from broadgauge.doctor.log.facts import LogReading, Speaker
from broadgauge.wording.listing import listed

_MOST_RUNS = 5
"""Runs of ranks that are written out; a line of more is not read."""
_MOST_NAMES = 3


def ranks_of(reading: LogReading, speakers: Iterable[Speaker]) -> tuple[int, ...]:
    """Their ranks in the largest communicator that they are members of, lowest first.

    Empty where one of them is in none: then hosts and processes say more.
    """
    wanted = set(speakers)
    by_size = sorted(reading.communicators.values(), key=lambda each: -len(each.members))
    for communicator in by_size:
        if wanted and wanted <= set(communicator.members.values()):
            ranks = (rank for rank, who in communicator.members.items() if who in wanted)
            return tuple(sorted(ranks))
    return ()


def who(reading: LogReading, speakers: Iterable[Speaker]) -> str:
    """`rank 3`, `ranks 0 to 7`, or `host a process 42 (GPU 3)` where no rank is known."""
    said = sorted(set(speakers))
    ranks = ranks_of(reading, said)
    if ranks:
        return rank_words(ranks)
    if not said:
        return "a process"
    first = f"host {said[0].host} process {said[0].pid}{_gpu_of(reading, said[0])}"
    return first if len(said) == 1 else f"{first} and {len(said) - 1} more"


def _gpu_of(reading: LogReading, speaker: Speaker) -> str:
    """` (GPU 3)`, where its lines name one device."""
    process = reading.processes.get(speaker)
    devices = set() if process is None else process.devices
    return f" (GPU {next(iter(devices))})" if len(devices) == 1 else ""


def rank_words(ranks: Iterable[int]) -> str:
    """`rank 3`, `ranks 0 to 7`, `ranks 0, 2 and 4 to 6`."""
    ordered = sorted(set(ranks))
    word = "rank" if len(ordered) == 1 else "ranks"
    return f"{word} {number_words(ordered)}"


def number_words(numbers: Sequence[int]) -> str:
    """Whole numbers in order, runs of three and more by their ends: `0, 2 and 4 to 6`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [word for run in runs for word in _of_run(run)]
    if len(words) > _MOST_RUNS:
        shown = runs[: _MOST_RUNS - 1]
        left = sum(len(run) for run in runs[_MOST_RUNS - 1 :])
        return f"{', '.join(word for run in shown for word in _of_run(run))} and {left} more"
    return listed(words)


def _of_run(run: Sequence[int]) -> tuple[str, ...]:
    return tuple(map(str, run)) if len(run) < 3 else (f"{run[0]} to {run[-1]}",)


def named(names: Iterable[str]) -> str:
    """Names in order, the first three of many: `node0, node1, node2 and 13 more`."""
    return listed(sorted(set(names)), most=_MOST_NAMES)
