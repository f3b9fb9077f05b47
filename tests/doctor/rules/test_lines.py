"""Does every rule know its lines, and none that only looks alike?

Lines are real (of the logs in tests/doctor/machine, or named with their source in lines/real.yaml)
or rendered from the source of a release, and marked so.
"""

import functools
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broadgauge.doctor.log.circumstances import CIRCUMSTANCES
from broadgauge.doctor.log.findings import ANY_ERROR, ANY_OTHER
from broadgauge.doctor.log.lines import TRIGGERS
from broadgauge.doctor.log.loading import shipped_rules
from broadgauge.doctor.log.matching import Match, Matcher
from broadgauge.doctor.log.prefix import Prefixes, plain
from broadgauge.doctor.log.rule import Rule, Wording
from broadgauge.specs.text.yaml_source import parse_yaml

HERE = Path(__file__).parent
LOGS = sorted((HERE.parent / "machine" / "logs").glob("*.log.gz"))
RULES = {rule.id: rule for rule in shipped_rules()}
WORDINGS = [(rule, wording) for rule in RULES.values() for wording in rule.lines]


def table(name: str, key: str) -> list[dict[str, Any]]:
    path = HERE / "lines" / name
    return list(parse_yaml(path.read_text(encoding="utf-8"), name).data[key])


NEAR_MISSES = "near-misses.yaml"
BY_FILE = {
    path.name: table(path.name, "lines")
    for path in sorted((HERE / "lines").glob("*.yaml"))
    if path.name != NEAR_MISSES
}
LINES = [entry for entries in BY_FILE.values() for entry in entries]


@functools.cache
def matcher() -> Matcher:
    return Matcher(shipped_rules())


def match_of(entry: dict[str, Any]) -> Match | None:
    is_text = entry.get("as", "nccl") == "text"
    return (matcher().match_text if is_text else matcher().match_nccl)(entry["line"])


@functools.cache
def of_machine() -> dict[tuple[str, str], str]:
    """(rule, wording) → a line of two GPUs' logs."""
    found: dict[tuple[str, str], str] = {}
    prefixes = Prefixes()
    for path in LOGS:
        for line in gzip.decompress(path.read_bytes()).splitlines():
            text = plain(line)
            messages = prefixes.messages(text)
            bodies = [message.body for message in messages]
            matches = [matcher().match_nccl(body) for body in bodies]
            for match in matches if messages else [matcher().match_text(text)]:
                if match is not None:
                    found.setdefault((match.rule.id, match.wording.says), f"{path.name}: {text}")
    return found


def fires(match: Match) -> bool:
    return any(
        all(match.fields.get(name) == word for name, word in finding.when.items())
        for finding in match.rule.findings
    )


def lines_of(rule: Rule, wording: Wording) -> list[str]:
    """What proves it, with where it is from."""
    own = [entry for entry in LINES if entry["rule"] == rule.id]
    told = [
        f"{entry['from']} ({entry['source']})"
        for entry in own
        if (match := match_of(entry)) is not None and match.wording == wording
    ]
    real = of_machine().get((rule.id, wording.says))
    return told if real is None else [f"real ({real})", *told]


def wrong_of(entry: dict[str, Any]) -> Iterator[str]:
    """What is not so of a line that a rule knows."""
    match = match_of(entry)
    if match is None or match.rule.id != entry["rule"]:
        yield f"is taken for {None if match is None else match.rule.id}"
        return
    if not entry["source"] or entry["from"] not in ("real", "rendered"):
        yield "is from nowhere"
    for name, value in entry.get("fields", {}).items():
        if match.fields[name] != str(value):
            yield f"{name} is {match.fields[name]}"


@pytest.mark.parametrize("name", BY_FILE)
def test_a_rule_knows_its_lines(name: str) -> None:
    wrong = [(entry, words) for entry in BY_FILE[name] for words in wrong_of(entry)]
    assert wrong == []


def test_what_looks_alike_does_not_fire() -> None:
    fired = []
    for entry in table(NEAR_MISSES, "misses"):
        match = match_of(entry)
        if entry["not"] == "any":
            is_right = match is None or not fires(match)
        else:
            assert entry["not"] in RULES
            is_right = match is None or match.rule.id != entry["not"]
        fired += [] if is_right else [entry]
    assert fired == []


def half_of(entry: dict[str, Any], wording: Wording) -> dict[str, Any]:
    """Its line, cut in the middle of what makes it that line."""
    head, line = wording.parts[0], entry["line"]
    return {**entry, "line": line[: max(1, len(head) * 2 // 3)] if head else line[:3]}


@pytest.mark.parametrize("name", BY_FILE)
def test_half_a_line_does_not_fire(name: str) -> None:
    fired = []
    for entry in BY_FILE[name]:
        found = match_of(entry)
        assert found is not None, entry
        match = match_of(half_of(entry, found.wording))
        fired += [] if match is None or match.wording != found.wording else [entry]
    assert fired == []


def test_every_wording_has_a_line() -> None:
    without = [(rule.id, wording.says) for rule, wording in WORDINGS if not lines_of(rule, wording)]
    assert without == []


def test_lines_of_others_contain_a_trigger() -> None:
    """The reader looks at no line without one."""
    triggers = [trigger.decode() for trigger in TRIGGERS]
    without = [
        (rule.id, wording.says)
        for rule, wording in WORDINGS
        if wording.level == "text"
        and not any(trigger in part for trigger in triggers for part in wording.parts)
    ]
    assert without == []


def test_what_rules_ask_of_the_job_can_be_asked() -> None:
    asked = {name for rule in RULES.values() for text in rule.findings for name in text.asks}
    assert asked == set(CIRCUMSTANCES)


def test_causes_of_consequences_are_known() -> None:
    for rule in RULES.values():
        known = {*RULES, ANY_ERROR, ANY_OTHER} - {rule.id}
        assert set(rule.consequence_of) <= known, rule.id


def test_how_many_lines_are_real(record_property: Any, capsys: pytest.CaptureFixture[str]) -> None:
    proofs = [lines_of(rule, wording) for rule, wording in WORDINGS]
    num_real = sum(any(proof.startswith("real") for proof in each) for each in proofs)
    num_rendered = len(proofs) - num_real
    num_misses = len(table(NEAR_MISSES, "misses"))
    with capsys.disabled():
        print(  # noqa: T201
            f"\n{len(RULES)} rules, {len(WORDINGS)} wordings: {num_real} by real lines, "
            f"{num_rendered} by lines rendered from a release's source; {num_misses} near misses"
        )
    assert num_real >= 60
    assert num_misses >= 30


def test_no_two_rules_are_each_others_consequence() -> None:
    """Neither would be told."""
    causes = {name: set(rule.consequence_of) for name, rule in RULES.items()}
    both = [
        (one, other)
        for one, named in causes.items()
        for other in named
        if one in causes.get(other, ())
    ]
    assert both == []
