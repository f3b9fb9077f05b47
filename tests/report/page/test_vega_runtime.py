"""Is the runtime's script kept whole, and made again where it was not?"""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from broadgauge.report.page import vega_runtime
from broadgauge.report.page.vega_runtime import runtime

SCRIPT = "a = 1 // ü\r\nb = 2\u2028"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How often the script was made, in a cache folder of the test's own."""
    times: list[int] = []

    def bundle() -> str:
        times.append(1)
        return SCRIPT

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(vega_runtime, "_bundle", bundle)
    runtime.cache_clear()
    yield times
    runtime.cache_clear()


def again() -> str | None:
    """As the next process asks."""
    runtime.cache_clear()
    return runtime()


def test_it_is_made_once(made: list[int], tmp_path: Path) -> None:
    assert again() == again() == SCRIPT
    assert len(made) == 1
    (kept,) = tmp_path.glob("cache/broadgauge/*")
    assert stat.S_IMODE(kept.stat().st_mode) & 0o077 == 0, "another user's word is no script"


@pytest.mark.parametrize("damage", [b"", b"\xff", SCRIPT.encode(), b"//\n" + SCRIPT.encode()])
def test_what_is_not_whole_is_made_again(made: list[int], tmp_path: Path, damage: bytes) -> None:
    again()
    (kept,) = tmp_path.glob("cache/broadgauge/*")
    whole = kept.read_bytes()
    kept.write_bytes(damage)
    assert again() == SCRIPT
    assert len(made) == 2
    assert kept.read_bytes() == whole
    kept.write_bytes(whole[:-1])
    assert again() == SCRIPT
    assert len(made) == 3


def test_where_nothing_can_be_kept_it_is_made_each_time(made: list[int], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert again() == again() == SCRIPT
    assert len(made) == 2


def test_a_relative_cache_folder_is_none(
    made: list[int], empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(empty_folder / "home"))
    again()
    assert [path.name for path in empty_folder.iterdir()] == ["home"]


def test_another_series_of_the_maker_is_done_without(
    made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vega_runtime, "version", lambda _: "2.0.0")
    assert again() is None
    assert made == []
