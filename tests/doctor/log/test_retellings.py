"""Are facts and findings the same whoever wrote the job's log down, and into how many files?"""

import pytest
from tests.doctor.log.retelling import (
    NAMES,
    RETELLINGS,
    clean,
    facts_of,
    findings_of,
    lines_of,
    read_lines,
)


@pytest.mark.parametrize("retelling", RETELLINGS)
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("2.18", "2.28"))])
def test_a_launcher_changes_nothing(name: str, retelling: str) -> None:
    reading = read_lines(RETELLINGS[retelling](lines_of(name)))
    assert facts_of(reading) == facts_of(clean(name))
    assert findings_of(reading) == findings_of(clean(name))
    assert reading.problems == []
