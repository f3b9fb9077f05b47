"""What is one rule: which words, printed by which versions, mean what, and what helps?

Rules are data (`doctor/rules/*.yaml`, and files of the user's own). How a line is written:

    says: "NET/{network} : GPU Direct RDMA {state:Enabled|Disabled} for HCA {index:int} '{hca}'"

`{name}` takes anything up to what follows it, `{name:int}` a whole number, `{name:float}` a decimal
one, `{name:hex}` hexadecimal digits with or without 0x, `{name:word}` what has no space,
`{name:A|B}` one of these words; `{{` and `}}` are braces. The line may go on after the last word,
unless `says` ends with `{end}`. In lines of others than NCCL `{rank}` is who said it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from broadgauge.catalog.entries import Part
from broadgauge.specs.records.record import Confidence, Severity

Level = Literal["info", "warn", "text"]
"""How NCCL printed it; `text`: a line of anyone else, which may say it anywhere in the line."""

_PLACE = re.compile(r"\{\{|\}\}|\{(?P<name>[a-z][a-z0-9_]*)(?::(?P<kind>[^{}]+))?\}")
_KINDS = {
    "int": r"-?[0-9]{1,18}",
    "float": r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?",
    "hex": r"(?:0x)?[0-9a-fA-F]{1,32}",
    "word": r"\S+",
}
_END = "end"
ORIGIN = "origin"
"""Told of each of NCCL's warnings, by its prefix: the file that printed it, `nvls` of
`transport/nvls.cc:244`."""

PROCESS_GROUP = "process_group"
"""Told of lines of torch's process groups, by their prefix: `7` of `[PG ID 3 PG GUID 7(tp) …]`, or
the number where there is no GUID. Source: pytorch/pytorch
torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, logPrefix."""


class Wording(Part):
    """One way in which some versions say it."""

    says: str = Field(min_length=3)
    versions: str = "2.18-2.30"
    """Of NCCL, `2.18-2.23`, `2.24-`; of others a name and version, or nothing."""
    level: Level = "info"
    subsystem: str | None = None
    """Of NCCL_DEBUG_SUBSYS, without which this version does not print it: `NET`, `INIT`."""
    source: str = ""
    """Where this version's source has it: `src/init.cc`."""

    @model_validator(mode="after")
    def _is_well_formed(self) -> Self:
        names = [match["name"] for match in _PLACE.finditer(self.says) if match["name"]]
        doubled = {name for name in names if names.count(name) > 1}
        if doubled:
            raise ValueError(f"{sorted(doubled)[0]!r} stands twice in {self.says!r}")
        if re.search(r"[{}]", _PLACE.sub("", self.says)):
            raise ValueError(f"a brace in {self.says!r} is no place; write {{{{ or }}}}")
        if _END in names and not self.says.endswith("{end}"):
            raise ValueError("`{end}` may only be the last of a line's words")
        if _has_open_places_that_touch(_split(self.says)):
            raise ValueError(f"two places touch in {self.says!r}; some word must part them")
        return self

    @property
    def fields(self) -> tuple[str, ...]:
        """What it tells, by name."""
        names = (match["name"] for match in _PLACE.finditer(self.says))
        return tuple(name for name in names if name and name != _END)

    @property
    def parts(self) -> tuple[str, ...]:
        """The words between the places, first to last; the first is empty where a place begins."""
        return tuple(self._unescaped(part) for part in _split(self.says)[::2])

    @property
    def pattern(self) -> str:
        """As a regular expression; what has no kind takes as little as it can, the last one all.

        From one place without a kind up to the next nothing is tried again: the first fit is as
        good as any, and a line that almost fits costs no more than one that fits.
        """
        pieces = _split(self.says)
        made: list[str] = []
        is_open = False
        for position, piece in enumerate(pieces):
            if position % 2 == 0:
                made.append(re.escape(self._unescaped(piece)))
                continue
            match = _PLACE.fullmatch(piece)
            assert match is not None
            if match["name"] == _END:
                made.append(r"\s*$")
                continue
            is_last = position == len(pieces) - 2 and not pieces[-1]
            place = f"(?P<{match['name']}>{_of_kind(match['kind'], is_last=is_last)})"
            if match["kind"] is None:
                place = f"{')' if is_open else ''}(?>{place}"
                is_open = True
            made.append(place)
        return "".join(made) + (")" if is_open else "")

    @staticmethod
    def _unescaped(text: str) -> str:
        return text.replace("{{", "{").replace("}}", "}")


def _has_open_places_that_touch(pieces: list[str]) -> bool:
    """Two that take any length could part a line in too many ways; words to choose from can't."""
    places = [_PLACE.fullmatch(piece) for piece in pieces[1::2]]
    is_open = [m is not None and m["name"] != _END and "|" not in (m["kind"] or "") for m in places]
    return any(
        is_open[n] and is_open[n + 1] and not pieces[2 * n + 2] for n in range(len(places) - 1)
    )


def _split(says: str) -> list[str]:
    """Words and places in turn; the words are first and last, perhaps empty."""
    pieces = [""]
    begin = 0
    for match in _PLACE.finditer(says):
        if match["name"] is None:
            continue
        pieces[-1] += says[begin : match.start()]
        pieces += [match.group(), ""]
        begin = match.end()
    pieces[-1] += says[begin:]
    return pieces


def _of_kind(kind: str | None, *, is_last: bool) -> str:
    if kind is None:
        return ".*" if is_last else ".*?"
    if kind in _KINDS:
        return _KINDS[kind]
    return "|".join(re.escape(word) for word in kind.split("|"))


class FindingText(Part):
    """What a reader is told. `{name}` stands for what the line told; `{ranks}` for who said it."""

    severity: Severity
    symptom: str
    cause: str
    fix: str
    confidence: Confidence
    when: dict[str, str] = Field(default_factory=dict)
    """Only where the line told these words. `origin`: the source file that printed a warning of
    NCCL's, without folder and ending."""
    asks: tuple[str, ...] = ()
    """Only where this is so in the job as a whole: names of doctor/log/circumstances.py."""

    def __hash__(self) -> int:
        return hash((self.symptom, self.cause))


class Rule(Part):
    """What is known of one thing that logs say."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    means: str
    lines: tuple[Wording, ...] = Field(min_length=1)
    tells: str | None = None
    """Which fact the reader takes from it (doctor/log/gathering.py); None: none. `noted`: kept for
    conclusions of several lines, though nothing is wrong with this one."""
    findings: tuple[FindingText, ...] = ()
    """The first one whose `when` and `asks` hold; none: the line is a fact, nothing is wrong."""
    consequence_of: tuple[str, ...] = ()
    """Rules whose sighting explains this one: where one of them was seen, it is not told.
    `any-error`: every rule whose finding is an error and that is itself no consequence of any;
    `any-other-error`: of launchers' lines, which follow from these, too: every rule whose finding
    is an error and that does not say this itself."""
    source: str
    """Of meaning, cause and fix."""
    note: str = ""

    @model_validator(mode="before")
    @classmethod
    def _one_finding(cls, data: Any) -> Any:
        """`finding:` for the usual one."""
        if isinstance(data, dict) and "finding" in data:
            if "findings" in data:
                raise ValueError("one of `finding` and `findings`")
            data = {**data, "findings": [data["finding"]]}
            del data["finding"]
        return data

    @model_validator(mode="after")
    def _tells_what_is_said(self) -> Self:
        fields = [set(wording.fields) for wording in self.lines]
        told, told_by_some = set.intersection(*fields) | {"ranks"}, set.union(*fields)
        for finding in self.findings:
            said = f"{finding.symptom} {finding.cause} {finding.fix}"
            unknown = {m["name"] for m in _PLACE.finditer(said) if m["name"]} - told
            unknown |= set(finding.when) - told_by_some - {ORIGIN}
            if unknown:
                raise ValueError(f"{sorted(unknown)[0]!r} is told by no line, or not by all")
        return self

    def __hash__(self) -> int:
        return hash(self.id)


def text_of(
    rule: Rule, fields: Mapping[str, str], holds: Callable[[str], bool] = lambda _circumstance: True
) -> FindingText | None:
    """Its first finding whose `when` holds for what a line told, and `asks` for the job.

    `holds`: of a circumstance by its name; before the job is known, any may. None: the line is a
    fact.
    """
    for text in rule.findings:
        if all(fields.get(name) == word for name, word in text.when.items()) and all(
            map(holds, text.asks)
        ):
            return text
    return None
