"""What do these logs say? One pass over each source; what is kept does not grow with its length."""

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from broadgauge.doctor.log.clocks import clock_in
from broadgauge.doctor.log.communicators import Holder
from broadgauge.doctor.log.endings import Endings
from broadgauge.doctor.log.facts import LogReading, Place, Seen, Speaker, UnknownWarning
from broadgauge.doctor.log.files import READ_ERRORS, Source, text_source
from broadgauge.doctor.log.gathering import Gatherer, Told
from broadgauge.doctor.log.gid_tables import GidTables
from broadgauge.doctor.log.gpu_names import GpuNames
from broadgauge.doctor.log.ibstat import Ibstat
from broadgauge.doctor.log.ibv_devinfo import IbvDevinfo
from broadgauge.doctor.log.lines import LAST_ERROR, Counts, TellingLine, telling_lines
from broadgauge.doctor.log.loading import shipped_rules
from broadgauge.doctor.log.masking import kept, masked, masked_variable
from broadgauge.doctor.log.matching import Match, Matcher
from broadgauge.doctor.log.nccl_tests import NcclTests
from broadgauge.doctor.log.prefix import Message, Prefixes, plain
from broadgauge.doctor.log.printed_variables import printed_variable
from broadgauge.doctor.log.process_lines import MOST_VARIABLES, version_in
from broadgauge.doctor.log.rule import ORIGIN, PROCESS_GROUP, Rule, text_of
from broadgauge.doctor.log.topo_matrix import TopoMatrix
from broadgauge.doctor.log.tracebacks import BEGIN

_LAST_ERROR = LAST_ERROR.decode()
MOST_SEEN = 1000
MOST_LINES = 3
MOST_UNKNOWN = 20
MOST_SPEAKERS = 4096
_RANK = re.compile(r"\[rank(\d{1,7})\]:|\bRank (\d{1,7})\]")
"""Source: pytorch/pytorch torch/distributed/distributed_c10d.py (its exception hook) and
torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp (logPrefix)."""
_OWNER = re.compile(r"\(RANK (\d{1,7})\)\s*$")
"""Source: pytorch/pytorch torch/distributed/checkpoint/api.py, CheckpointException.__str__."""
_PRINTED_BY = re.compile(r"^\[rank\d{1,7}\]: ")
_GROUP = re.compile(r"\[PG (?:ID )?(\d{1,9})(?: PG GUID (\w{1,64}))?")
"""The id counts each process's own groups; the GUID is the same on all ranks. Source:
pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, logPrefix."""


def read_logs(sources: Iterable[Source], rules: Sequence[Rule] | None = None) -> LogReading:
    """Facts and sightings of one job. Raises InputError where a source can't be opened."""
    reader = _Reader(_shipped_matcher() if rules is None else Matcher(rules))
    for source in sources:
        reader.read(source)
    reader.finish()
    return reader.reading


def read_text(
    text: str | bytes, name: str = "-", rules: Sequence[Rule] | None = None
) -> LogReading:
    """Of a log that is in memory."""
    return read_logs([text_source(text, name)], rules)


@functools.cache
def _shipped_matcher() -> Matcher:
    return Matcher(shipped_rules())


@dataclass(slots=True)
class _Reader:
    matcher: Matcher
    reading: LogReading = field(default_factory=LogReading)
    gatherer: Gatherer = field(init=False)
    prefixes: Prefixes = field(default_factory=Prefixes)
    _tables: NcclTests = field(init=False)
    _ports: Ibstat = field(init=False)
    _device_ports: IbvDevinfo = field(init=False)
    _gids: GidTables = field(init=False)
    _topo: TopoMatrix = field(init=False)
    _gpus: GpuNames = field(init=False)
    _endings: Endings = field(init=False)
    _versions: set[str] = field(default_factory=set)
    _told_ranks: dict[int | None, int] = field(default_factory=dict)
    """Of a traceback that one rank prints of another: who prints it → whose it is."""
    _past_owners: set[int | None] = field(default_factory=set)
    """Printers whose traceback ended with the line before."""
    _seen: dict[tuple[str, tuple[str, ...]], Seen] = field(default_factory=dict)
    _before_error: str | None = None
    """What stood before torch's `Last error:` in the line before; None: it was another line."""

    def __post_init__(self) -> None:
        self.gatherer = Gatherer(self.reading)
        self._tables = NcclTests(self.reading.measured, self.reading.listed_ranks)
        self._ports = Ibstat(self.reading.ports)
        self._device_ports = IbvDevinfo(self.reading.ports)
        self._gids = GidTables(self.reading.gids, self._device_ports)
        self._topo = TopoMatrix(self.reading.distances)
        self._gpus = GpuNames(self.reading.gpu_names)
        self._endings = Endings()

    def read(self, source: Source) -> None:
        counts = Counts()
        errors: list[Exception] = []
        self._endings.begin()
        chunks = _until_error(source.open(), errors)
        for line in telling_lines(chunks, counts, self.matcher.triggers):
            self._take(line, source.name)
        self._endings.end(Place(source.name, max(1, counts.num_lines)))
        self._tables.end()
        self._told_ranks.clear()
        self._past_owners.clear()
        self._before_error = None
        for error in errors:
            self.reading.problems.append(_problem(source.name, counts.num_lines, error))
        self.reading.num_bytes += counts.num_bytes
        self.reading.num_lines += counts.num_lines
        self.reading.lines_of_file[source.name] = counts.num_lines

    def finish(self) -> None:
        """A version that a process prints without a prefix is that of all, where there is one."""
        self.gatherer.finish()
        self.reading.endings.extend(self._endings.found)
        num_left_out = self.gatherer.room.num_left_out
        if num_left_out:
            self.reading.problems.append(
                f"the logs tell more than any job does: {num_left_out} lines of processes and "
                "facts beyond that are left out"
            )
        if len(self._versions) != 1:
            return
        for process in self.reading.processes.values():
            process.version = process.version or next(iter(self._versions))

    def _take(self, line: TellingLine, name: str) -> None:
        text = plain(line.text)
        place = Place(name, line.number)
        messages = self.prefixes.messages(text)
        if messages:
            self.reading.num_nccl_lines += 1
            if messages[0].begin:
                self._tables.take_before(text[: messages[0].begin], place)
            for message in messages:
                self._take_message(message, place, text)
            return
        self._note_owner(text)
        match = self._match_last_error(text) or self.matcher.match_text(text)
        is_explained = match is not None and text_of(match.rule, match.fields) is not None
        is_ending = self._endings.take(
            text, place, is_explained=is_explained, is_known=match is not None
        )
        if match is None:
            readers = (self._tables, self._ports, self._device_ports, self._gids, self._topo)
            is_listed = any(reader.take(text, place) for reader in readers)
            self._gpus.take(text)
            self._take_setting(text, place)
            self.reading.num_known_lines += is_listed or is_ending
            return
        self.reading.num_known_lines += 1
        if self._endings.is_ignored:
            return
        if match.rule.tells == "version":
            self._versions.update(version_in(match.fields["version"]))
            self._note_library(match)
        self._keep(_with_group(match, text), text, place, None, text)

    def _note_owner(self, text: str) -> None:
        """Whose traceback is it? torch's checkpoints print those of other ranks; one ends with the
        first line that is not indented."""
        if not self._told_ranks and BEGIN not in text:
            return
        said_by = _said_by(text)
        if said_by in self._past_owners:
            self._past_owners.discard(said_by)
            self._told_ranks.pop(said_by, None)
        if BEGIN in text:
            owner = _OWNER.search(text)
            self._told_ranks.pop(said_by, None)
            if owner is not None:
                self._told_ranks[said_by] = int(owner[1])
        elif not _PRINTED_BY.sub("", text).startswith((" ", "\t")):
            self._past_owners.add(said_by)

    def _match_last_error(self, text: str) -> Match | None:
        """NCCL's own words in a line of torch's, which announced them in the line before."""
        before, self._before_error = self._before_error, None
        if text.rstrip().endswith(_LAST_ERROR):
            self._before_error = text.rstrip()[: -len(_LAST_ERROR)]
        if before is None:
            return None
        rank = _RANK.search(text)
        words = text if rank is None or rank[1] is None else text[rank.end() :].lstrip()
        match = self.matcher.match_nccl(text.removeprefix(before) if words is text else words)
        return match if match is not None and match.rule.findings else None

    def _note_library(self, match: Match) -> None:
        if match.rule.tells == "version" and match.wording.says.startswith("RCCL"):
            self.reading.has_rccl = True

    def _take_setting(self, text: str, place: Place) -> None:
        if "NCCL_" not in text:
            return
        setting = printed_variable(text)
        variables = self.reading.printed_variables
        if setting is not None and len(variables) < MOST_VARIABLES:
            name, value = setting
            variables.setdefault(name, (place, masked_variable(name, value)))

    def _take_message(self, message: Message, place: Place, line: str) -> None:
        process = self.gatherer.process(message.speaker, message.device, place)
        holder = None if process is None else (process.speaker, message.device)
        match = self.matcher.match_nccl(message.body)
        if match is None:
            if message.level == "WARN" and len(self.reading.unknown_warnings) < MOST_UNKNOWN:
                self.reading.unknown_warnings.append(
                    UnknownWarning(place, kept(message.body), message.speaker, message.origin)
                )
            return
        if message.origin and match.rule.findings:
            stem = message.origin.rsplit("/", 1)[-1].partition(".")[0]
            match = match._replace(fields={**match.fields, ORIGIN: stem})
        self._note_library(match)
        if match.rule.tells is not None and process is not None and holder is not None:
            told = Told(match.fields, message.body, place, process, holder)
            self.gatherer.take(match.rule.tells, told)
        self._keep(match, message.body, place, holder, line)

    def _keep(
        self, match: Match, text: str, place: Place, holder: Holder | None, line: str
    ) -> None:
        """Of rules with findings or that conclusions ask for: once for each thing told, counted."""
        if not match.rule.findings and match.rule.tells != "noted":
            return
        told = tuple(word for name, word in match.fields.items() if name != "rank")
        key = (match.rule.id, told)
        seen = self._seen.get(key)
        if seen is None:
            if len(self._seen) >= MOST_SEEN:
                self.reading.num_seen_left_out += 1
                return
            fields = {name: masked(value or "") for name, value in match.fields.items()}
            seen = Seen(rule=match.rule, fields=fields)
            self._seen[key] = seen
            self.reading.seen.append(seen)
        seen.count += 1
        if (clock := clock_in(line)) is not None:
            seen.first_clock, seen.last_clock = seen.first_clock or clock, clock
        if len(seen.lines) < MOST_LINES:
            seen.lines.append((place, kept(text)))
        if holder is not None:
            _note_speaker(seen, *holder)
        elif len(seen.ranks) < MOST_SPEAKERS:
            owner = self._told_ranks.get(_said_by(text))
            rank = _rank_of(match, text)
            if owner is not None and not match.fields.get("rank"):
                rank = owner
            seen.ranks.update(() if rank is None else (rank,))


def _with_group(match: Match, text: str) -> Match:
    group = _GROUP.search(text)
    if group is None:
        return match
    return match._replace(fields={**match.fields, PROCESS_GROUP: group[2] or group[1]})


def _until_error(chunks: Iterator[bytes], errors: list[Exception]) -> Iterator[bytes]:
    """What could be read of a damaged file."""
    try:
        yield from chunks
    except READ_ERRORS as error:
        errors.append(error)


def _problem(name: str, num_lines: int, error: Exception) -> str:
    words = getattr(error, "strerror", None) or str(error)
    if num_lines == 0:
        return f"{name} can't be read: {words}"
    return f"{name} is read up to line {num_lines}, then it is damaged: {words}"


def _note_speaker(seen: Seen, speaker: Speaker, device: int | None) -> None:
    if len(seen.speakers) < MOST_SPEAKERS:
        seen.speakers.add(speaker)
    if device is not None:
        seen.devices[device] += 1


def _rank_of(match: Match, text: str) -> int | None:
    """Who said a line that is not NCCL's: as the rule knows it, else as torch writes it."""
    told = match.fields.get("rank", "")
    if told.isdecimal() and len(told) <= 7:
        return int(told)
    return _said_by(text)


def _said_by(text: str) -> int | None:
    named = _RANK.search(text)
    return None if named is None else int(named[1] or named[2])
