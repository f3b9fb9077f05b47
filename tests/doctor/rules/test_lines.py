"""Does every rule know its lines, and none that only looks alike?

Lines are real (of the logs in tests/doctor/machine, or named with their source in lines/real.yaml)
or rendered from the source of a release, and marked so.
"""

import functools
import gzip
from pathlib import Path
from typing import Any

import pytest

from broadgauge.doctor.log.findings import ANY_ERROR, ANY_OTHER
from broadgauge.doctor.log.lines import TRIGGERS
from broadgauge.doctor.log.loading import shipped_rules
from broadgauge.doctor.log.matching import Match, Matcher
from broadgauge.doctor.log.prefix import Prefixes, plain
from broadgauge.doctor.log.rule import Rule, Wording
from broadgauge.specs.yaml_source import parse_yaml

HERE = Path(__file__).parent
LOGS = sorted((HERE.parent / "machine" / "logs").glob("*.log.gz"))
RULES = {rule.id: rule for rule in shipped_rules()}
WORDINGS = [(rule, wording) for rule in RULES.values() for wording in rule.lines]


def table(name: str, key: str) -> list[dict[str, Any]]:
    path = HERE / "lines" / name
    return list(parse_yaml(path.read_text(encoding="utf-8"), name).data[key])


LINES = [
    entry
    for path in sorted((HERE / "lines").glob("*.yaml"))
    if path.name != "near-misses.yaml"
    for entry in table(path.name, "lines")
]
MISSES = table("near-misses.yaml", "misses")


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


@pytest.mark.parametrize("entry", LINES, ids=lambda entry: f"{entry['rule']}:{entry['line'][:40]}")
def test_a_rule_knows_its_line(entry: dict[str, Any]) -> None:
    match = match_of(entry)
    assert match is not None
    assert match.rule.id == entry["rule"]
    assert entry["source"]
    assert entry["from"] in ("real", "rendered")
    for name, value in entry.get("fields", {}).items():
        assert match.fields[name] == str(value)


@pytest.mark.parametrize("entry", MISSES, ids=lambda entry: f"{entry['not']}:{entry['line'][:40]}")
def test_what_looks_alike_does_not_fire(entry: dict[str, Any]) -> None:
    match = match_of(entry)
    if entry["not"] == "any":
        assert match is None or not fires(match)
    else:
        assert entry["not"] in RULES
        assert match is None or match.rule.id != entry["not"]


@pytest.mark.parametrize("entry", LINES, ids=lambda entry: f"{entry['rule']}:{entry['line'][:40]}")
def test_half_a_line_does_not_fire(entry: dict[str, Any]) -> None:
    """A line that is cut in the middle of what makes it that line."""
    found = match_of(entry)
    assert found is not None
    head = found.wording.parts[0]
    cut = entry["line"][: max(1, len(head) * 2 // 3)] if head else entry["line"][:3]
    match = match_of({**entry, "line": cut})
    assert match is None or match.wording != found.wording


@pytest.mark.parametrize(
    ("rule", "wording"), WORDINGS, ids=[f"{rule.id}:{w.says[:50]}" for rule, w in WORDINGS]
)
def test_every_wording_has_a_line(rule: Rule, wording: Wording) -> None:
    assert lines_of(rule, wording)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_lines_of_others_contain_a_trigger(rule: Rule) -> None:
    """The reader looks at no line without one."""
    for wording in rule.lines:
        if wording.level == "text":
            assert any(trigger.decode() in part for trigger in TRIGGERS for part in wording.parts)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_causes_of_consequences_are_known(rule: Rule) -> None:
    assert set(rule.consequence_of) <= {*RULES, ANY_ERROR, ANY_OTHER} - {rule.id}


def test_how_many_lines_are_real(record_property: Any, capsys: pytest.CaptureFixture[str]) -> None:
    proofs = [lines_of(rule, wording) for rule, wording in WORDINGS]
    num_real = sum(any(proof.startswith("real") for proof in each) for each in proofs)
    num_rendered = len(proofs) - num_real
    with capsys.disabled():
        print(  # noqa: T201
            f"\n{len(RULES)} rules, {len(WORDINGS)} wordings: {num_real} by real lines, "
            f"{num_rendered} by lines rendered from a release's source; {len(MISSES)} near misses"
        )
    assert num_real >= 60
    assert len(MISSES) >= 30
