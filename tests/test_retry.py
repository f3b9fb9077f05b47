"""Proves scripts/retry: what fetches is tried again, and what could not be had is named."""

import os
import subprocess
from pathlib import Path

import pytest

RETRY = Path(__file__).parents[1] / "scripts" / "retry"
COUNTS = """
echo x >> tries
test "$(wc -l < tries)" -ge "$1" || exit 7
echo "had with $2"
"""


def run_retry(folder: Path, succeeds_at: int) -> subprocess.CompletedProcess[str]:
    """A command that fails until then, with three pauses of nothing."""
    return subprocess.run(
        [RETRY, "a thing", "sh", "-c", COUNTS, "sh", str(succeeds_at), "its own  words"],
        cwd=folder,
        env={**os.environ, "RETRY_PAUSES_S": "0 0 0"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("succeeds_at", [1, 2, 4])
def test_a_registry_may_have_a_bad_minute(tmp_path: Path, succeeds_at: int) -> None:
    ran = run_retry(tmp_path, succeeds_at)
    assert (ran.returncode, ran.stdout) == (0, "had with its own  words\n")
    assert ran.stderr.count("a thing did not come (exit 7)") == succeeds_at - 1
    assert (tmp_path / "tries").read_text().count("x") == succeeds_at


def test_what_could_not_be_had_is_named(tmp_path: Path) -> None:
    ran = run_retry(tmp_path, 5)
    assert ran.returncode == 7
    assert "retry: a thing could not be had: 4 tries of: sh -c" in ran.stderr


def test_pauses_grow() -> None:
    (line,) = (line for line in RETRY.read_text().splitlines() if "RETRY_PAUSES_S:-" in line)
    pauses = [int(word) for word in line.partition(":-")[2].partition("}")[0].split()]
    assert pauses == sorted(set(pauses))
    assert len(pauses) >= 3
