"""A scripted API server for each test that wants one."""

from collections.abc import Iterator

import pytest
from tests.platforms.kubernetes.fake_api import FakeApi, fake_api


@pytest.fixture
def fake() -> Iterator[FakeApi]:
    with fake_api() as started:
        yield started
