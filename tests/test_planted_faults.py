"""Proves scripts/planted_faults.py, and that its faults can be planted: they are the ten that were
chosen, their patches apply, and the test that has to notice one belongs to the run named."""

import ast
import importlib
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[1]
PLANTED = REPOSITORY / "tests/planted"
NAMES = [
    "busbw-factor",
    "lost-record",
    "secret-in-a-file",
    "leftover-namespace",
    "wrong-rank",
    "torn-line",
    "wrong-interval",
    "broken-link",
    "arrow-upwards",
    "slow-shaper",
]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "scripts"))
    return importlib.import_module("planted_faults")


@pytest.fixture
def faults(script: ModuleType) -> dict[str, Any]:
    return {fault.name: fault for fault in script.read_faults(REPOSITORY)}


def test_they_are_ten_and_the_shapers_alone_is_judged(faults: dict[str, Any]) -> None:
    assert list(faults) == NAMES
    assert [name for name, fault in faults.items() if fault.set != "facts"] == ["slow-shaper"]
    assert {fault.patch for fault in faults.values()} == {p.name for p in PLANTED.glob("*.patch")}


@pytest.mark.parametrize("name", NAMES)
def test_it_applies_and_is_a_mistake_of_two_lines_at_most(
    faults: dict[str, Any], name: str
) -> None:
    path = REPOSITORY / faults[name].patch_path
    check = ["git", "apply", "--check", str(path)]
    done = subprocess.run(check, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    changed = [line for line in path.read_text().splitlines() if line[:1] in "-+"]
    added, removed = (sum(line.startswith(sign) for line in changed) - 1 for sign in "+-")
    assert max(added, removed) in (1, 2)


@pytest.mark.parametrize("name", NAMES)
def test_what_has_to_notice_it_is_in_its_set(
    script: ModuleType, faults: dict[str, Any], name: str
) -> None:
    fault = faults[name]
    if fault.test == script.LINT_IMPORTS:
        assert fault.set == "facts"
        return
    path, _, function = fault.test.partition("[")[0].partition("::")
    marks = marks_of(REPOSITORY / path, function)
    assert ("measured" in marks) is (fault.set == "measured"), marks
    assert not marks & {"thorough", "gpu"}, marks


def marks_of(path: Path, function: str) -> set[str]:
    """Of a test that is there, those of its whole file included; not those of single cases."""
    statements = ast.parse(path.read_text()).body
    (test,) = [
        each for each in statements if isinstance(each, ast.FunctionDef) and each.name == function
    ]
    of_file = [
        each.value
        for each in statements
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "pytestmark"
    ]
    whole = [mark for mark in test.decorator_list if "parametrize" not in ast.unparse(mark)]
    return {
        node.attr
        for marks in (*of_file, *whole)
        for node in ast.walk(marks)
        if isinstance(node, ast.Attribute)
    }


def test_sets_are_what_the_makefile_runs(script: ModuleType) -> None:
    options = script.pytest_options(REPOSITORY)
    assert options["facts"] == ["-m", "not measured and not thorough and not gpu"]
    assert options["measured"][:2] == ["-m", "measured and not gpu"]


CASE = '<testcase name="test_it">{}</testcase>'
FAILED = '<failure message="assert 1 == 2&#10; + more" />'


@pytest.mark.parametrize(
    ("exit_code", "said", "colour"),
    [
        (0, [""], "green"),
        (1, [FAILED], "red"),
        (1, ["", FAILED], "red"),
        (1, ['<error message="at setup" />'], "neither"),
        (2, ['<error message="can not be collected" />'], "neither"),
        (0, ['<skipped message="not judged: a busy machine" />'], "neither"),
        (5, [], "neither"),
        (4, None, "neither"),
    ],
)
def test_red_is_a_failed_test_and_nothing_else(
    script: ModuleType, tmp_path: Path, exit_code: int, said: list[str] | None, colour: str
) -> None:
    report = tmp_path / "report.xml"
    if said is not None:
        report.write_text(f"<testsuites>{''.join(map(CASE.format, said))}</testsuites>")
    outcome = script.outcome_of(report, script.Ended(exit_code=exit_code, output="", seconds=0.0))
    assert (outcome.is_green, outcome.is_red) == (colour == "green", colour == "red")
    assert outcome.is_judged is not (said is not None and "not judged" in "".join(said))
    assert (outcome.why == "assert 1 == 2") is (colour == "red")
