"""Are facts and findings the same whoever wrote the job's log down, and into how many files?"""

import pytest
from tests.doctor.log.retelling import (
    RETELLINGS,
    clean,
    facts_of,
    findings_of,
    lines_of,
    read_lines,
)

BASES = (
    *("2.18.3-nvlink", "2.21.5-dead-peer", "2.28.9-two-nodes", "2.28.9-torch-timeout"),
    *("2.30.7-missing-plugin", "2.30.7-wrong-interface"),
)


@pytest.mark.parametrize("retelling", RETELLINGS)
@pytest.mark.parametrize("name", BASES)
def test_a_launcher_changes_nothing(name: str, retelling: str) -> None:
    reading = read_lines(RETELLINGS[retelling](lines_of(name)))
    assert facts_of(reading) == facts_of(clean(name))
    assert findings_of(reading) == findings_of(clean(name))
    assert reading.problems == []
