"""What must be said of logs of a two-GPU machine, of four versions of NCCL, and what must not?"""

from pathlib import Path

import pytest

from broadgauge.doctor.log.files import open_sources
from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_logs
from broadgauge.specs.record import Severity

LOGS = Path(__file__).parents[1] / "machine" / "logs"
ALL = sorted(path.name.removesuffix(".log.gz") for path in LOGS.glob("*.log.gz"))
HEALTHY = ("nvlink", "torch-groups", "two-nodes-more-sockets")
SAID = {
    "p2p-off": "p2p-not-used",
    "sockets-inside": "network-inside-node",
    "two-nodes": "socket-streams-few",
    "wrong-interface": "interface-of-one-host",
}
"""By scenario: the conclusion that each version's log leads to."""


def rules_worse_than_a_note(name: str) -> set[str]:
    reading = read_logs(open_sources([LOGS / f"{name}.log.gz"]))
    found = log_findings(reading)
    return {finding.rule for finding in found if finding.severity is not Severity.INFO}


def of_scenario(*scenarios: str) -> list[str]:
    return [name for name in ALL if name.partition("-")[2] in scenarios]


@pytest.mark.parametrize("name", of_scenario(*HEALTHY))
def test_nothing_is_wrong(name: str) -> None:
    assert rules_worse_than_a_note(name) == set()


@pytest.mark.parametrize("name", of_scenario(*SAID))
def test_what_was_done_to_the_job_is_said(name: str) -> None:
    assert SAID[name.partition("-")[2]] in rules_worse_than_a_note(name)


@pytest.mark.parametrize("name", of_scenario(*SAID))
def test_nothing_is_said_that_was_not_done(name: str) -> None:
    others = set(SAID.values()) - {SAID[name.partition("-")[2]]}
    assert rules_worse_than_a_note(name) & others == set()


@pytest.mark.parametrize("name", sorted(set(ALL) - set(of_scenario(*HEALTHY))))
def test_something_is_said_of_every_other_log(name: str) -> None:
    """Each names its network, or says why there is none."""
    reading = read_logs(open_sources([LOGS / f"{name}.log.gz"]))
    assert log_findings(reading)
