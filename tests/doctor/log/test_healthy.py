"""Do healthy logs pass, and is each first line right?

Logs: healthy/, rewritten from public ones; sources.yaml says what a correct reading tells of each.
"""

from pathlib import Path
from typing import Any

import pytest

from broadgauge.doctor.answer import Subject
from broadgauge.doctor.log.answers import answers_of
from broadgauge.doctor.log.files import open_sources
from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_logs
from broadgauge.specs.records.record import Severity
from broadgauge.specs.text.yaml_source import parse_yaml

HEALTHY = Path(__file__).parent / "healthy"
EXPECTED: dict[str, dict[str, Any]] = parse_yaml(
    (HEALTHY / "sources.yaml").read_text(encoding="utf-8"), "sources.yaml"
).data["logs"]
GEFORCE = ("p2p-not-used", "host-variable-trap")
"""What is said of boards that have no P2P: true, and worse than a note."""


def test_each_log_has_its_row() -> None:
    assert sorted(path.stem for path in HEALTHY.glob("*.log")) == sorted(EXPECTED)
    kinds = ("nvlink", "roce", "ib", "efa", "tcpx", "fastrak", "rccl")
    assert all(any(name.startswith(kind) for name in EXPECTED) for kind in kinds)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_nothing_worse_than_a_note_is_said(name: str) -> None:
    found = log_findings(read_logs(open_sources([HEALTHY / f"{name}.log"])))
    worse = [each.rule for each in found if each.severity is not Severity.INFO]
    if name.startswith("geforce"):
        assert set(worse) <= set(GEFORCE)
    else:
        assert worse == []


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_first_line_is_right(name: str) -> None:
    answers = answers_of(read_logs(open_sources([HEALTHY / f"{name}.log"])))
    told = {each.value: answers[each].state.value for each in Subject}
    wanted = {each: EXPECTED[name][each] for each in ("rdma", "gdr", "nvlink")}
    assert {each: told[each] for each in wanted} == wanted
