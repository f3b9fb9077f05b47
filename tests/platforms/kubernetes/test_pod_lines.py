"""Is each line of the first pod kept once, and a bounded number of them?"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.platforms.kubernetes import pod_lines
from broadgauge.platforms.kubernetes.pod_lines import FULL, PodLines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "r.pod0.log"


LOG = ["a", "b", "a", "é", ""]


@given(cuts=st.lists(st.integers(0, len(LOG)), max_size=4), lives=st.integers(1, 3))
def test_a_log_that_is_read_again_is_kept_once(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], lives: int
) -> None:
    path = tmp_path_factory.mktemp("logs") / "pod0.log"
    for _ in range(lives):
        lines = PodLines(path)
        for cut in [*cuts, len(LOG)]:
            lines.begins()
            for line in LOG[:cut]:
                lines.keep(line)
    assert path.read_text(encoding="utf-8").split("\n")[:-1] == LOG


def test_a_log_that_was_rotated_goes_on(path: Path) -> None:
    lines = PodLines(path)
    for stream in (["a", "b"], ["b", "c"], ["c", "d"]):
        lines.begins()
        for line in stream:
            lines.keep(line)
    assert path.read_text() == "a\nb\nc\nd\n"


@pytest.mark.parametrize(("most", "value"), [("MOST_BYTES", 50), ("MOST_LINES", 10)])
def test_a_full_file_says_so_once_and_grows_no_more(
    path: Path, most: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_lines, most, value)
    for _ in range(2):  # of the tool's lives
        lines = PodLines(path)
        for number in range(100):
            lines.keep(f"{number:04}")
    assert path.read_text().split("\n") == [*(f"{n:04}" for n in range(10)), FULL, ""]


def test_what_holds_no_line_feed_is_one_line_and_can_be_written(path: Path) -> None:
    PodLines(path).keep("a\nb \ud800")
    assert path.read_text() == "a b ?\n"
