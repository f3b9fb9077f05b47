"""Proves tests/disturbance.py: repeated is what judges rates and failed while cores were stolen,
nothing else, as long as there is time; not judged is what had no cores in any attempt."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests import disturbance

REPOSITORY = Path(__file__).parents[1]
PLUGIN = """
from tests import disturbance
disturbance.clock_s = 0.0
disturbance.now_s = lambda: disturbance.clock_s
disturbance.ratios = [{ratios}]
disturbance.spent_s = (0, 0)
def core_time():
    taken_s, all_s = disturbance.spent_s
    disturbance.spent_s = (taken_s + 1000 * disturbance.ratios[0], all_s + 1000)
    return disturbance.spent_s
disturbance.core_time = core_time
def wait_until_quiet(patience_s):
    if len(disturbance.ratios) > 1:
        disturbance.ratios.pop(0)
disturbance.wait_until_quiet = wait_until_quiet
disturbance.CoreWatch.begin = lambda self: None
disturbance.CoreWatch.most_since = lambda self, begin_s: {most}
def pytest_configure(config):
    config.addinivalue_line("markers", "measured: judges rates")
    config.pluginmanager.register(disturbance.Repeating())
"""
TESTS = """
import pytest
measured = []
@pytest.fixture(scope="module")
def number():
    measured.append(len(measured) + 1)
    return measured[-1]
def test_good(number):
    assert number == 1
@pytest.mark.measured
def test_disturbed(number):
    assert number == 4  # after one repeat of each, and the other's
@pytest.mark.measured
def test_bad(number):
    raise ValueError
"""
RACE = """
from pathlib import Path
def test_that_fails_the_first_time(request):
    begun = request.path.with_name("begun")
    is_second = begun.exists()
    begun.touch()
    assert is_second
"""
RIGHT_ONCE_IN_EIGHT = """
import pytest
ratios = iter([0.9, 0.9, 0.99, 0.9, 0.9, 0.9, 0.9, 0.9] * 8)
@pytest.mark.measured
def test_rate():
    assert next(ratios) >= 0.98
"""
EXCUSABLE = """
import pytest
from tests import disturbance
@pytest.mark.measured
def test_rate():
    assert 0.82 >= 0.85
"""
MEASURES_IN_A_FIXTURE = """
import pytest
from tests import disturbance
@pytest.fixture(scope="module")
def rate():
    disturbance.ratios = [0.9]
    return 0.82
def test_that_it_is_there(rate):
    disturbance.ratios = [0.0]
@pytest.mark.measured
def test_rate(rate):
    assert rate >= 0.85
"""
TAKES = """
from tests import disturbance
import pytest
def run(seconds):
    disturbance.clock_s += seconds
    assert False
"""


REPEATED_LAST = """
from pathlib import Path
import pytest
from tests.judgements import WrongVerdict
pytestmark = pytest.mark.measured
begun = []
def test_first():
    begun.append("first")
    assert begun.count("first") == 2
def test_second():
    begun.append("second")
    raise WrongVerdict("95 %")
def test_third(request):
    begun.append("third")
    request.addfinalizer(lambda: Path("begun").write_text(" ".join(begun)))
    assert begun.count("third") == 2
"""
ENDS_EARLY = """
import pytest
pytestmark = pytest.mark.measured
def test_that_waits_to_be_repeated():
    assert False
def test_that_ends_it():
    pytest.exit("enough")
"""


def run_tests(folder: Path, tests: str, ratios: str, most: str | None = None) -> tuple[int, str]:
    """Exit code and output of a session. `ratios`: stolen of each attempt, the last one for ever
    after; `most`: of the worst second."""
    plugin = PLUGIN.format(ratios=ratios, most=most or ratios.split(",", maxsplit=1)[0])
    (folder / "conftest.py").write_text(plugin)
    (folder / "test_some.py").write_text(tests)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-qra", "-c", "/dev/null", "--rootdir", folder, folder],
        env={
            "PYTHONPATH": str(REPOSITORY),
            "PATH": "/usr/bin:/bin",
            "COLUMNS": "200",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # half of such a session's time
        },
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
    )
    return ran.returncode, ran.stdout + ran.stderr


def num_failed(output: str) -> int:
    """Attempts that failed while cores were stolen, by the summary."""
    lines = re.findall(r"core time was taken; failed (?:(once)|(\d+) times)", output)
    return sum(1 if once else int(number) for once, number in lines)


@pytest.mark.parametrize(
    ("stolen", "counts", "attempts"), [("0.5", "1 failed, 2 passed", 6), ("0.0", "2 failed", 0)]
)
def test_a_failure_is_repeated_only_where_cores_were_stolen(
    tmp_path: Path, stolen: str, counts: str, attempts: int
) -> None:
    code, output = run_tests(tmp_path, TESTS, stolen)
    assert code == 1, output
    assert counts in output
    assert num_failed(output) == attempts
    if attempts:
        assert (
            "test_disturbed: 50% of a second's core time was taken; failed 2 times, pas" in output
        )
        assert "failed 4 times, in every attempt" in output


def test_a_race_is_not_repeated_however_much_was_stolen(tmp_path: Path) -> None:
    """It would pass the second time."""
    code, output = run_tests(tmp_path, RACE, "0.9")
    assert code == 1, output
    assert "1 failed" in output
    assert "90% of a second's core time was taken; failed once, and is not repeated" in output


@pytest.mark.parametrize("most", ["0.0", "0.04"])
def test_a_shaper_that_is_right_now_and_then_fails(tmp_path: Path, most: str) -> None:
    code, output = run_tests(tmp_path, RIGHT_ONCE_IN_EIGHT, "0.0", most)
    assert code == 1, output
    assert "1 failed" in output


def test_what_measures_is_not_judged_where_every_attempt_had_no_cores(tmp_path: Path) -> None:
    code, output = run_tests(tmp_path, EXCUSABLE, "0.41, 0.37, 0.35, 0.3")
    assert code == 0, output
    shares = "41 %, 37 %, 35 % and 30 %"
    reason = f"not judged: others took {shares} of the cores in 4 attempts"
    assert f"SKIPPED [1] test_some.py:4: {reason}" in output
    assert "= not judged: cores were taken away =" in output
    assert f"test_some.py::test_rate: {reason}; AssertionError: assert 0.82 >= 0.85" in output
    assert "1 skipped" in output


@pytest.mark.parametrize(
    ("ratios", "most", "attempts"),
    [
        ("0.0", "0.04", 0),  # quiet: no repeat either
        ("0.05", "0.9", 4),  # one bad second
        ("0.5, 0.5, 0.5, 0.05", "0.9", 4),
        ("0.5, 0.05, 0.5, 0.5", "0.9", 4),
    ],
)
def test_what_measures_fails_where_one_attempt_had_its_cores(
    tmp_path: Path, ratios: str, most: str, attempts: int
) -> None:
    code, output = run_tests(tmp_path, EXCUSABLE, ratios, most)
    assert code == 1, output
    assert "1 failed" in output
    assert "not judged" not in output
    assert num_failed(output) == attempts


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("@pytest.mark.measured", ""),
        ("    assert 0.82 >= 0.85", "    raise ValueError"),
        ("    assert 0.82 >= 0.85", "    pytest.fail('too fast')"),
        ("def test_rate():", "def test_rate(broken):"),
        ("def test_rate():", "def test_rate(breaking):"),
    ],
)
def test_nothing_but_an_assertion_of_a_marked_test_is_excused(
    tmp_path: Path, line: str, instead: str
) -> None:
    fixtures = (
        "@pytest.fixture\ndef broken():\n    assert False\n"
        "@pytest.fixture\ndef breaking():\n    yield\n    assert False\n"
    )
    code, output = run_tests(tmp_path, EXCUSABLE.replace(line, instead) + fixtures, "0.5")
    assert code == 1, output
    assert "skipped" not in output
    assert "not judged" not in output
    assert num_failed(output) == (1 if line.startswith("@") else 4)


def test_the_set_up_of_a_module_is_of_the_attempt(tmp_path: Path) -> None:
    """The first attempt has three readings: 90 % in the fixture, then two of nothing."""
    code, output = run_tests(tmp_path, MEASURES_IN_A_FIXTURE, "0.0", most="0.9")
    assert code == 0, output
    assert "1 passed, 1 skipped" in output
    assert "took 30 %, 90 %, 90 % and 90 % of the cores in 4 attempts" in output


def test_one_attempt_that_crashed_is_not_excused_by_the_others(tmp_path: Path) -> None:
    crash = "    if len(disturbance.ratios) == 3:\n        raise ValueError\n    assert 0.82"
    tests = EXCUSABLE.replace("    assert 0.82", crash)
    code, output = run_tests(tmp_path, tests, "0.5, 0.5, 0.5, 0.5")
    assert code == 1, output
    assert num_failed(output) == 4


@pytest.mark.parametrize(
    ("lengths", "attempts"),
    [
        ((10, 1), 4 + 4),
        ((20, 1), 3 + 4),  # the other's repeats leave too little for the third
        ((25, 1), 3 + 4),
        ((35, 15, 1), 2 + 2 + 4),
        ((70, 1), 1 + 4),
    ],
)
def test_nothing_is_repeated_once_the_time_for_it_is_spent(
    tmp_path: Path, lengths: tuple[int, ...], attempts: int
) -> None:
    """60 s in all."""
    tests = "".join(
        f"@pytest.mark.measured\ndef test_{number}(): run({seconds})\n"
        for number, seconds in enumerate(lengths)
    )
    _, output = run_tests(tmp_path, TAKES + tests, "0.5")
    assert num_failed(output) == attempts, output
    assert ("no time is left to repeat it" in output) == (lengths[0] != 10), output


def test_what_measures_is_not_judged_by_one_attempt_where_no_time_is_left(tmp_path: Path) -> None:
    code, output = run_tests(
        tmp_path, TAKES + "@pytest.mark.measured\ndef test_a(): run(100)", "0.5"
    )
    assert code == 0, output
    assert "others took 50 % of the cores in 1 attempt;" in output


def test_a_wait_in_vain_makes_the_next_one_short(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, waits = iter([False, False, True, True, True]), []
    clock = iter(range(0, 10_000, 100))

    def wait(patience_s: float) -> bool:
        waits.append(patience_s)
        return next(answers)

    monkeypatch.setattr(disturbance, "wait_until_quiet", wait)
    monkeypatch.setattr(disturbance, "now_s", lambda: next(clock))
    budget = disturbance.Budget(disturbance.BUDGET_S)
    budget.left_s = 430.0
    for _ in range(5):
        budget.wait()
    assert waits == [30, 5, 5, 30, 30]
    assert budget.left_s == -70


JUDGING = """
import pytest
from tests.disturbance import judging

@pytest.mark.measured
def test_rate():
    with judging([{"findings": FINDINGS}]):
        assert 0.82 >= 0.85
"""


@pytest.mark.parametrize(
    ("findings", "code", "words"),
    [
        ('[{"rule": "stolen-cores"}]', 0, "1 of 1 trials had no cores"),
        ('[{"rule": "slow-pair"}]', 1, "assert 0.82 >= 0.85"),
    ],
)
def test_a_trial_without_cores_excuses_what_is_asserted_of_it(
    tmp_path: Path, findings: str, code: int, words: str
) -> None:
    found, output = run_tests(tmp_path, JUDGING.replace("FINDINGS", findings), "0.02", most="0.3")
    assert found == code, output
    assert words in output


def test_repeats_come_last_and_a_wrong_verdict_is_none(tmp_path: Path) -> None:
    code, output = run_tests(tmp_path, REPEATED_LAST, "0.5")
    assert code == 1, output
    assert (tmp_path / "begun").read_text() == "first second third first third"
    assert "1 failed, 2 passed" in output
    assert "test_second: 50% of a second's core time was taken; failed once, judged wh" in output


def test_what_waits_to_be_repeated_has_failed_where_the_session_ends(tmp_path: Path) -> None:
    code, output = run_tests(tmp_path, ENDS_EARLY, "0.5")
    assert code != 0, output
    assert "FAILED test_some.py::test_that_waits_to_be_repeated" in output


def test_the_cheapest_module_comes_first_and_stays_together() -> None:
    names = ["dear::1", "new::1", "dear::2", "cheap::1", "new::2", "cheap::2"]
    wall_s = {"dear::1": 1.0, "dear::2": 50.0, "cheap::1": 9.0, "cheap::2": 9.0, "new::2": 0.1}
    times = {name: {"wall_s": seconds} for name, seconds in wall_s.items()}
    cache = SimpleNamespace(get=lambda key, default: times)
    items = [SimpleNamespace(nodeid=name, path=Path(name.split("::")[0])) for name in names]
    repeating: Any = disturbance.Repeating()
    repeating.pytest_collection_modifyitems(SimpleNamespace(cache=cache), items)
    ordered = ["cheap::1", "cheap::2", "dear::1", "dear::2", "new::1", "new::2"]
    assert [item.nodeid for item in items] == ordered
