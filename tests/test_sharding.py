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


def run_session(folder: Path, tests: str, *options: str, **variables: str) -> tuple[int, str]:
    """Exit code and output."""
    (folder / "conftest.py").write_text(CONFTEST.format(repository=str(REPOSITORY)))
    (folder / "test_some.py").write_text(f"import pytest\n{tests}")
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-qra", "-p", "no:warnings", "-c", "/dev/null"),
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
def test_fact(): pytest.skip("not judged: no cores")
@pytest.mark.measured
def test_rate(): pytest.skip("not judged: no cores")
@pytest.mark.skipif(True, reason="no compiler")
def test_never(): pass
"""


@pytest.mark.parametrize(
    ("variables", "counts"), [({}, "4 skipped"), ({"CI": "true"}, "2 failed, 1 skipped, 1 error")]
)
def test_what_is_not_there_is_a_failure_in_ci(
    tmp_path: Path, variables: dict[str, str], counts: str
) -> None:
    _, output = run_session(tmp_path, SKIPS, **variables)
    assert counts in output, output


MARKED = """
@pytest.mark.measured
def test_rate(): pass
def test_other(): pass
"""


def test_what_judges_rates_is_run_alone(tmp_path: Path) -> None:
    code, output = run_session(tmp_path, MARKED, "-m", "alone")
    assert (code, "1 passed, 1 deselected" in output) == (0, True), output
    code, output = run_session(tmp_path, MARKED, "-n", "1")
    assert code == 1
    assert "is run alone: add -m 'not alone'" in output
    assert "1 passed" in output
    code, output = run_session(tmp_path, MARKED, "-n", "1", "-m", "not alone")
    assert (code, "1 passed" in output) == (0, True), output


FAILS_ONCE = """
from pathlib import Path
@pytest.mark.measured
def test_rate(request):
    begun = request.path.with_name("begun")
    is_second = begun.exists()
    begun.touch()
    assert is_second
"""
STOLEN = """
from tests import disturbance
disturbance.core_time = iter((500 * number, 1000 * number) for number in range(99)).__next__
disturbance.wait_until_quiet = lambda patience_s: True
"""


@pytest.mark.parametrize(
    ("options", "counts"), [((), "1 failed"), (("--repeats-s", "9"), "1 passed")]
)
def test_nothing_is_repeated_unless_it_is_asked_for(
    tmp_path: Path, options: tuple[str, ...], counts: str
) -> None:
    _, output = run_session(tmp_path, STOLEN + FAILS_ONCE, *options)
    assert counts in output, output


HANGS = """
import threading
def test_hangs(): threading.Event().wait()
def test_never(): pass
"""


@pytest.mark.parametrize("beside", [(), ("-n", "1", "--max-worker-restart", "0")])
def test_the_first_test_that_hangs_shows_where_and_ends_the_session(
    tmp_path: Path, beside: tuple[str, ...]
) -> None:
    limits = ("-o", "timeout=2", "-o", "faulthandler_timeout=1")
    code, output = run_session(tmp_path, HANGS, *limits, *beside)
    assert code != 0
    assert "1 failed in " in output, output
    assert re.search(r'File ".*test_some.py", line \d+ in test_hangs', output), output
    assert "test_hangs took too long" in output
