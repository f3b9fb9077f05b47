"""Is the text that a training reads where nothing was given the same on every rank?"""

import sysconfig
from pathlib import Path

import pytest

from broadgauge.messages.tasks import FileText, StandardLibraryText
from broadgauge.probes.training import sources


def test_the_standard_librarys_sources_come_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without tests, and without what was installed beside it."""
    for name in ("b.py", "a/z.py", "a.py", "a/data.txt", "c/test/t.py", "site-packages/x/x.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    text = sources.read_text(StandardLibraryText())
    assert text.content == b"a/z.py\na.py\nb.py\n"
    assert text.description.endswith(": 3 files, 17 bytes, SHA-256 c2495c704858…")


def test_files_of_one_length_under_one_path_are_told_apart(tmp_path: Path) -> None:
    """Each node may have its own; ranks compare what they say of it."""
    path = tmp_path / "a.txt"
    told = set()
    for content in ("one", "two", "one"):
        path.write_text(content)
        told.add(sources.read_text(FileText(path=str(path))).description)
    assert len(told) == 2
