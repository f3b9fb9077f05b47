"""How many examples does a property get that is costly to look at? `make test-thorough` tries all.

`.ci/run` tries a third: each change draws others, and its minutes are for all tests together.
"""

import os
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import settings

ALL = "BROADGAUGE_ALL_EXAMPLES"
"""Set by `make test-thorough`."""
Test = TypeVar("Test", bound=Callable[..., None])


def costly(max_examples: int) -> Callable[[Test], Test]:
    """In the place of `settings`."""
    tried = max_examples if os.environ.get(ALL) else max(2, max_examples // 3)

    def mark(test: Test) -> Test:
        marked: Test = pytest.mark.costly(settings(max_examples=tried, deadline=None)(test))
        return marked

    return mark
