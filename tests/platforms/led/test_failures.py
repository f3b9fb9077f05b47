"""Proves platforms/led/failures.py: a launch that is refused is a finding of its run."""

from pathlib import Path

import pytest
from tests.platforms.led.fakes import (
    FakeAllocation,
    FakeLeader,
    FakeLink,
    Shown,
    hello,
    life_of,
    make_launch,
    make_led,
)

from broadgauge.messages.agent import Refused
from broadgauge.messages.leader import LifeEnds
from broadgauge.platforms.led.failures import REFUSED
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.records.record import Severity

LAUNCH = make_launch("b0.l0")
FOUND = "no rank was started, by what the preflight found: a does not reach b (and 1 more)"
WHY = Refused(message=f"{FOUND}\nMTU 9000 is set", hint="`preflight: false` starts it")


def test_a_refused_launch_is_a_finding_with_one_sentence(tmp_path: Path) -> None:
    """Which a report's table of findings shows, and what is below it as its evidence."""
    link = FakeLink(hello(0), (life_of(LAUNCH), WHY, LifeEnds(life_id="b0.l0")))
    led = make_led(tmp_path, FakeAllocation(found=FakeLeader([link])), LAUNCH)
    with pytest.raises(LaunchError) as refused:
        led.start(LAUNCH, Shown())
    error = refused.value
    assert error.message == f"b0.l0: {WHY.message}"
    assert error.hint == WHY.hint
    (finding,) = error.findings
    assert (finding.rule, finding.severity) == (REFUSED, Severity.ERROR)
    assert (finding.symptom, finding.evidence) == (FOUND, ("MTU 9000 is set",))
    assert finding.fix == WHY.hint
