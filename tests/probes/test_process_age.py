"""Is a process's age that since its start, and nothing where the kernel tells nonsense?"""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from broadgauge.probes.process_age import process_age_s


def test_it_is_there_since_before_its_first_line() -> None:
    begin_s = time.monotonic()
    told = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            "from broadgauge.probes.process_age import process_age_s; print(process_age_s())",
        ],
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert 0 <= float(told.stdout) <= time.monotonic() - begin_s + 0.02


@pytest.mark.parametrize(
    "stat",
    ["", "1 (a) S", "1 (a) b) S " + "0 " * 40, "1 (a) S " + "9" * 18 + " 99999999999999" * 40],
)
def test_nonsense_is_unknown(stat: str, tmp_path: Path) -> None:
    path = tmp_path / "stat"
    path.write_text(stat)
    assert process_age_s(path) is None
    assert process_age_s(tmp_path / "none") is None


def test_a_name_with_spaces_and_parentheses_is_no_field(tmp_path: Path) -> None:
    pid, _, rest = Path("/proc/self/stat").read_text().partition("(")
    (tmp_path / "stat").write_text(f"{pid}(a) 1 (b) {rest.rpartition(')')[2]}")
    found, plain = process_age_s(tmp_path / "stat"), process_age_s()
    assert found is not None
    assert plain is not None
    assert found == pytest.approx(plain, abs=0.5)
