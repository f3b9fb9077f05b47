"""A test that takes too long hangs: the first one ends the session, instead of each one after it.

pytest's faulthandler shows every stack ten seconds before (`faulthandler_timeout`), from within C
code too, and from workers that run beside each other; then pytest-timeout fails the test, whose
fixtures are torn down, and nothing else is begun.
"""

from collections.abc import Generator

import pytest

HANG_S = 400.0
"""What a test may wait for a condition: ten times and more what it takes where nobody else is at
work. Below pytest's own time-out, so that the test says what it waited for."""


class EndAtTimeout:
    """The plugin."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.excinfo is not None and call.excinfo.exconly().startswith("Failed: Timeout"):
            item.session.shouldfail = f"{item.nodeid} took too long"
        return report
