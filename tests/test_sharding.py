"""Proves tests/sharding.py and what tests/conftest.py makes of marks, in sessions of their own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sharding import Shard, parse_shard

REPOSITORY = Path(__file__).parents[1]
CONFTEST = """
import sys
sys.path.insert(0, {repository!r})
from tests.conftest import *
"""
NAMES = [f"tests/test_some.py::test_case[{number}]" for number in range(4000)]


def test_every_test_is_in_one_shard() -> None:
    shards = [Shard(index=index, count=8) for index in range(8)]
    assert all(sum(shard.has(name) for shard in shards) == 1 for name in NAMES)
    sizes = [sum(map(shard.has, NAMES)) for shard in shards]
    assert min(sizes) > 400


@pytest.mark.parametrize("text", ["", "8", "8/8", "1/0", "-1/8", "1/8/2", "a/b"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="0/8"):
        parse_shard(text)


CASES = """
@pytest.mark.thorough
@pytest.mark.parametrize("number", range(40))
def test_case(number): pass
def test_other(): pass
"""


def test_all_shards_together_run_each_thorough_test_once(tmp_path: Path) -> None:
    ran = []
    for index in range(2):
        _, output = run_session(tmp_path, CASES, "-rA", "--shard", f"{index}/2")
        names = re.findall(r"PASSED \S+::(test_\S+)", output)
        names.remove("test_other")
        assert 10 < len(names) < 30
        ran += names
    assert sorted(ran) == sorted(f"test_case[{number}]" for number in range(40))


TOGETHER = """
@pytest.mark.thorough("one costly fixture")
@pytest.mark.parametrize("number", range(20))
def test_case(number): pass
"""


def test_what_shares_a_costly_fixture_is_in_one_shard(tmp_path: Path) -> None:
    counts = []
    for index in range(4):
        _, output = run_session(tmp_path, TOGETHER, "--shard", f"{index}/4")
        found = re.search(r"(\d+) passed", output)
        counts.append(int(found[1]) if found else 0)
    assert sorted(counts) == [0, 0, 0, 20]


def run_session(folder: Path, tests: str, *options: str, **variables: str) -> tuple[int, str]:
    """Exit code and output."""
    (folder / "conftest.py").write_text(CONFTEST.format(repository=str(REPOSITORY)))
    (folder / "test_some.py").write_text(f"import pytest\n{tests}")
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-qra", "-c", "/dev/null"),
            *("--rootdir", folder, *options, folder),
        ],
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "200", **variables},
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
    )
    return ran.returncode, ran.stdout + ran.stderr


SKIPS = """
def test_here(): pytest.skip("no such tool here")
def test_there(): pytest.skip("not judged: no cores")
@pytest.mark.skipif(True, reason="no compiler")
def test_never(): pass
"""


@pytest.mark.parametrize(
    ("variables", "counts"), [({}, "3 skipped"), ({"CI": "true"}, "1 failed, 1 skipped, 1 error")]
)
def test_what_is_not_there_is_a_failure_in_ci(
    tmp_path: Path, variables: dict[str, str], counts: str
) -> None:
    _, output = run_session(tmp_path, SKIPS, **variables)
    assert counts in output, output


MARKED = """
@pytest.mark.measuring
@pytest.mark.shares_cores
def test_losses(): pass
@pytest.mark.measuring
@pytest.mark.shares_cores
@pytest.mark.needs_cores
def test_step_time(): pass
@pytest.mark.measuring
def test_hang(): pass
@pytest.mark.needs_cores
def test_rate(): pass
def test_other(): pass
"""


def test_what_judges_rates_is_run_alone(tmp_path: Path) -> None:
    """And what needs torch, unless it says that it bears others and judges no times."""
    code, output = run_session(tmp_path, MARKED, "-rA", "-m", "alone")
    ran = re.findall(r"PASSED \S+::(test_\S+)", output)
    assert (code, ran) == (0, ["test_step_time", "test_hang", "test_rate"]), output
    code, output = run_session(tmp_path, MARKED, "-n", "2")
    assert code == 1
    assert "is run alone: add -m 'not alone'" in output
    assert sorted(re.findall(r"ERROR \S+::(test_\S+)", output)) == sorted(ran), output
    code, output = run_session(tmp_path, MARKED, "-rA", "-n", "2", "-m", "not alone")
    ran = re.findall(r"PASSED \S+::(test_\S+)", output)
    assert (code, sorted(ran)) == (0, ["test_losses", "test_other"]), output
