"""Is all said that must be of a two-GPU machine's logs, of four versions, and nothing else?"""

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

MACHINE = Path(__file__).parents[1] / "machine"
LOGS = {path.name.removesuffix(".log.gz"): path for path in (MACHINE / "logs").glob("*.log.gz")}
EXPECTED: dict[str, Any] = parse_yaml(
    (MACHINE / "expected.yaml").read_text(encoding="utf-8"), "expected.yaml"
).data["logs"]
DONE_TO_THE_JOB = {
    "p2p-off": {"p2p-not-used"},
    "sockets-inside": {"network-inside-node"},
    "two-nodes": {"socket-streams-few"},
    "wrong-interface": {"interface-of-one-host"},
    "missing-interface": {"socket-no-interface"},
    "missing-plugin": {"plugin-missing"},
    "rdma-asked-not-there": {"no-network-plugin"},
    "same-gpu": {"same-gpu", "same-gpu-partition"},
    "dead-peer": {"peer-closed"},
}
"""By scenario: what was done to it on purpose, of which one rule must speak in each version."""
FIRST_LINES = {
    "nvlink": ("not needed", "not needed", "on"),
    "torch-groups": ("not needed", "not needed", "on"),
    "p2p-off": ("not needed", "not needed", "off"),
    "sockets-inside": ("off", "off", "off"),
    "two-nodes": ("off", "off", "unknown"),
    "two-nodes-more-sockets": ("off", "off", "unknown"),
    "wrong-interface": ("off", "off", "unknown"),
    "torch-timeout": ("off", "off", "unknown"),
    "missing-interface": ("unknown", "unknown", "unknown"),
    "rdma-asked-not-there": ("unknown", "unknown", "unknown"),
}
"""By scenario: RDMA, GPUDirect RDMA and NVLink, the same of each version."""
HEALTHY = ("nvlink", "torch-groups", "two-nodes-more-sockets")


def test_each_log_has_its_expectation() -> None:
    assert sorted(EXPECTED) == sorted(LOGS)
    assert len(LOGS) >= 50


@pytest.mark.parametrize("name", sorted(LOGS))
def test_what_is_said_of_it(name: str) -> None:
    reading = read_logs(open_sources([LOGS[name]]))
    found = log_findings(reading)
    communicators = reading.communicators.values()
    ways = {way.value for each in communicators for ways in each.paths.values() for way in ways}

    def of(severity: Severity) -> list[str]:
        return [finding.rule for finding in found if finding.severity is severity]

    assert {
        "paths": sorted(ways),
        "errors": of(Severity.ERROR),
        "warnings": of(Severity.WARNING),
        "notes": of(Severity.INFO),
    } == EXPECTED[name]


@pytest.mark.parametrize("name", sorted(LOGS))
def test_the_first_line(name: str) -> None:
    expected = FIRST_LINES.get(name.partition("-")[2])
    if expected is not None:
        answers = answers_of(read_logs(open_sources([LOGS[name]])))
        asked = (Subject.RDMA, Subject.GDR, Subject.NVLINK)
        assert tuple(answers[each].state.value for each in asked) == expected


@pytest.mark.parametrize("name", sorted(LOGS))
def test_no_warning_of_nccl_is_unknown(name: str) -> None:
    assert read_logs(open_sources([LOGS[name]])).unknown_warnings == []


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_what_was_done_to_the_job_is_expected(name: str) -> None:
    """Of the table itself, so that it can't be rewritten to whatever is said."""
    expected = EXPECTED[name]
    worse = {*expected["errors"], *expected["warnings"]}
    scenario = name.partition("-")[2]
    if scenario in HEALTHY:
        assert worse == set()
    for done, rules in DONE_TO_THE_JOB.items():
        assert bool(worse & rules) == (done == scenario) or done in ("dead-peer", "two-nodes")
        assert done != scenario or worse & rules
