"""What the tests of real ranks share: the process that they are forked from."""

from collections.abc import Iterator

import pytest
from tests.probes.forked_rank import end_of_forking


@pytest.fixture(scope="session", autouse=True)
def forking() -> Iterator[None]:
    yield
    end_of_forking()
