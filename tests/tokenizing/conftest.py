"""What the tests of prepared sets share: a cache of their own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where sets are kept that name no other place."""
    monkeypatch.setenv("BROADGAUGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache/data"
