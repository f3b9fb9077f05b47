"""What does a failure say in one line?"""

import pytest

from broadgauge.specs.records.record import ErrorKind, TrialError


@pytest.mark.parametrize(
    ("message", "headline"),
    [
        ("no such file: train.py\nmore", "no such file: train.py"),
        ("no number; its last lines:\nhello\nbye\n", "no number; its last line: bye"),
        ("no number; its last lines:", "no number; it printed no line"),
        ("", ""),
    ],
)
def test_a_headline_announces_nothing_that_it_leaves_out(message: str, headline: str) -> None:
    assert TrialError(kind=ErrorKind.REFUSED, message=message).headline == headline
