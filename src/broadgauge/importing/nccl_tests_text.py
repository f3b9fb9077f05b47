"""What did nccl-tests print? One measurement a table, type and operation.

A table begins with the line `# nThread …` and ends with `# Out of bounds values`. Before it stands
the program's name (from 2.17 on; else perhaps on the shell's own line), after it a line for each
rank. Launchers put words in front of lines, and NCCL's log may break a row in two.
Source: NVIDIA/nccl-tests src/common.cu of 2.10 to 2.17, src/util.cu of 2.18 to 2.19.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from broadgauge.doctor.log.nccl_tests import RANK_LINE
from broadgauge.importing.measured import (
    CollectiveMeasured,
    Facts,
    ImportedMeasurement,
    ShapeGiven,
    SizeMeasured,
    measured_collective,
)
from broadgauge.importing.nccl_tests import (
    NO_LATENCY,
    PROGRAMS,
    TYPES,
    Alike,
    RankLine,
    alike,
    nodes_and_ranks,
    of_first_group,
    op_of,
    ops_of_rows,
    size_measured,
    unusual,
)
from broadgauge.messages.vocabulary import CollectiveOp
from broadgauge.probes.nccl_tests.output import TableRow, nccl_version, read_row
from broadgauge.specs.errors import InputError

MARKS = ("# nThread", "# nccl-tests version", "# Out of bounds values", "out-of-place")
"""What its output holds, and no other program's."""
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LAUNCHER = re.compile(r"^\[[\d,]+\]<std(?:out|err)>:\s?")
"""Of mpirun --tag-output. Any other words in front of a line are passed over."""
_NCCL_LINE = r"{host}:\d+:\d+ \[\d+\] (?:[\d:. -]+ )?(?:NCCL|\S+:\d+ NCCL)\b"
_NO_HOST = r"(?:^|(?<=\s))[A-Za-z][\w.-]*"
_ROW = re.compile(rf"(?<!\S)\d+\s+\d+\s+(?:{'|'.join(sorted(TYPES))})\s.*$")
_BEGIN = re.compile(r"# nThread \d+ nGpus \d+ .*?(?<!warmup )(?<!agg )iters: (\d{1,9})\b")
_WARM_UP = re.compile(r"warmup iters: (\d{1,9})\b")
_AGGREGATED = re.compile(r"agg iters: (\d{1,9})\b")
_GRAPH = re.compile(r"graph: (\d{1,9})\b")
_PROGRAM = re.compile(rf"\b({'|'.join(sorted(PROGRAMS))})_perf\b")
_CONCLUDED = "# Collective test concluded"
_VERSION = re.compile(r"# nccl-tests version (\S+) .*?nccl-library=(\d{1,9})\b")
_WRONG = re.compile(r"# Out of bounds values : (\d{1,18})\b")
_CPU_TIME = re.compile(r"#\s+size\s+count\s+type.*\bcputime\b")


@dataclass(slots=True, kw_only=True)
class _Table:
    """One run of one of its programs, as far as it has been read."""

    line: int
    header: str
    program: str | None
    iterations: int
    facts: Facts
    ranks: list[RankLine] = field(default_factory=list)
    rows: list[tuple[int, TableRow]] = field(default_factory=list)
    """Each with its line."""
    row_texts: list[str] = field(default_factory=list)

    def setting(self, pattern: re.Pattern[str]) -> int | None:
        """Of the header; None: this version does not say it."""
        found = pattern.search(self.header)
        return None if found is None else int(found[1])


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Takes in the lines of one file."""

    name: str
    given: ShapeGiven
    measured: list[ImportedMeasurement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    program: str | None = None
    """Of the table that comes next."""
    table: _Table | None = None
    """That has begun and not ended."""
    has_tables: bool = False

    def take(self, number: int, line: str) -> None:
        """Raises InputError for what nccl-tests would not print."""
        if (version := _VERSION.search(line)) is not None:
            self.facts = Facts(version=version[1], nccl=nccl_version(int(version[2])))
        elif (begin := _BEGIN.search(line)) is not None:
            self.begin(number, line, int(begin[1]))
        elif _CPU_TIME.search(line):
            message = "times of the CPU (`-C 1`), not of the collective"
            raise InputError(f"{self.name}:{number}: {message}", hint="run it without -C")
        elif (row := _ROW.search(line)) is not None:
            self.add_row(number, row[0])
        elif (wrong := _WRONG.search(line)) is not None:
            self.end(int(wrong[1]))
        elif self.table is None:
            self.program = program_in(line) or self.program
        elif (rank := RANK_LINE.search(line)) is not None:
            group = int(rank["group"] or 0)
            self.table.ranks.append(RankLine(host=rank["host"], group=group, gpu=rank["gpu"]))

    def begin(self, number: int, line: str, iterations: int) -> None:
        self.refuse_open()
        self.has_tables = True
        self.table = _Table(
            line=number,
            header=line,
            program=self.program,
            iterations=iterations,
            facts=self.facts,
        )
        self.program = None

    def add_row(self, number: int, text: str) -> None:
        if self.table is None:
            raise InputError(
                f"{self.name}:{number}: a row of nccl-tests outside of a table: no line "
                "`# nThread …` before it",
                hint="import its whole output, with the lines that begin with `#`",
            )
        row = read_row(text)
        if row is None:
            raise InputError(
                f"{self.name}:{number}: no whole row of nccl-tests: "
                f"{' '.join(text.split())[:80]!r}",
                hint="is the file cut, or do two programs write into it at once?",
            )
        self.table.rows.append((number, row))
        self.table.row_texts.append(text)

    def end(self, num_wrong: int) -> None:
        if self.table is not None:
            measured, note = _measured(self.table, num_wrong, self.name, self.given)
            self.measured += measured
            self.notes += [] if note is None else [note]
        self.table = None

    def refuse_open(self) -> None:
        if self.table is not None:
            raise InputError(
                f"{self.name}:{self.table.line}: this table of nccl-tests has no end, after "
                f"{len(self.table.rows)} rows: no line `# Out of bounds values`",
                hint="did the test end? is the file cut?",
            )


def read_text(
    text: str, name: str, given: ShapeGiven
) -> tuple[tuple[ImportedMeasurement, ...], list[str]]:
    """Every table's measurements, and what was passed over. Raises InputError."""
    reader = _Reader(name=name, given=given)
    for number, line in _lines(text):
        reader.take(number, line)
    reader.refuse_open()
    if not reader.has_tables:
        raise InputError(
            f"{name}: no table of nccl-tests: no line `# nThread …`",
            hint="import its whole output, with the lines that begin with `#`",
        )
    return tuple(reader.measured), reader.notes


def program_in(line: str) -> str | None:
    """`all_reduce` of `./all_reduce_perf -b 8`; None: no program of nccl-tests begins there."""
    called = _PROGRAM.search(line)
    return None if called is None or _CONCLUDED in line else called[1]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its number, as nccl-tests wrote it: NCCL's own taken out of the middle."""
    hosts = {
        match["host"] for match in map(RANK_LINE.search, text.splitlines()) if match is not None
    }
    host = "|".join(sorted(map(re.escape, {h.split(".")[0] for h in hosts} | hosts))) or _NO_HOST
    noise = re.compile(_NCCL_LINE.format(host=f"(?:{host})"))
    begun = ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _LAUNCHER.sub("", _ANSI.sub("", raw))
        cut = noise.search(line)
        if cut is not None:
            begun += line[: cut.start()]
            continue
        yield number, begun + line
        begun = ""


def _measured(
    table: _Table, num_wrong: int, name: str, given: ShapeGiven
) -> tuple[list[ImportedMeasurement], str | None]:
    """Of each type and operation; and what was passed over, if it was."""
    place = f"{name}:{table.line}"
    num_ranks = given.ranks or len(of_first_group(table.ranks))
    op = op_of(table.program, given, place, ops_of_rows(table.row_texts, num_ranks))
    if op is None:
        return [], f"{place}: {table.program}_perf is no collective that Broadgauge knows"
    nodes, ranks = nodes_and_ranks(table.ranks, given, place)
    settings = unusual(table.setting(_AGGREGATED), table.setting(_GRAPH), table.ranks)
    facts = Facts(
        version=table.facts.version,
        nccl=table.facts.nccl,
        gpus=tuple(rank.gpu for rank in table.ranks if rank.gpu),
    )
    kinds: dict[Alike, list[SizeMeasured]] = {}
    for number, row in table.rows:
        if row.size_bytes:  # 0: rounded down to nothing
            kind = alike(
                row.dtype, row.redop, row.root, is_out_of_place=row.out_of_place is not None
            )
            size = _size(row, table.iterations, f"{name}:{number}", (op, ranks))
            kinds.setdefault(kind, []).append(size)
    found = [
        CollectiveMeasured(
            program="nccl-tests",
            op=op,
            nodes=nodes,
            ranks=ranks,
            dtype=kind.dtype,
            sizes=sizes,
            settings={**settings, **dict(kind.settings)},
            warm_up_iterations=table.setting(_WARM_UP),
            num_wrong=num_wrong,
            no_latency=NO_LATENCY,
        )
        for kind, sizes in kinds.items()
    ]
    return [measured_collective(each, place, facts) for each in found], None


def _size(
    row: TableRow, iterations: int, place: str, ring: tuple[CollectiveOp, int]
) -> SizeMeasured:
    time_us, _algbw, busbw, wrong = row.out_of_place or row.in_place
    cells = [sides[3] for sides in (row.out_of_place, row.in_place) if sides]
    return size_measured(
        size_bytes=row.size_bytes,
        time_us=_number(time_us, place, "time"),
        busbw=_number(busbw, place, "busbw"),
        wrong=[count for count in (_count(cell, place) for cell in cells) if count is not None],
        is_checked=wrong != "N/A",
        iterations=iterations,
        ring=ring,
        place=place,
    )


def _number(text: str, place: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"{place}: {what} {text!r} is no number", hint="the file must be as nccl-tests wrote it"
        ) from None


def _count(text: str, place: str) -> float | None:
    """How many values are wrong; None: not checked, or before 2.13 an error and no count."""
    if text == "N/A":
        return None
    number = _number(text, place, "#wrong")
    return number if number >= 1 or number == 0 else None
