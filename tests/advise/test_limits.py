"""Does every threshold of a verdict or a finding stand in one file, with its reason?"""

import ast
from pathlib import Path

import broadgauge.advise
from broadgauge.advise import limits

ROOM = Path(broadgauge.advise.__file__).parent
OF_OTHER_QUESTIONS = {"ladders", "recommendations"}
"""Folders that judge predictions and sensitivity, whose limits are of those."""
WORDING = {"MOST_NAMED", "_MOST_LINES", "_DEVIATIONS_PER_QUARTILE"}
"""How much is listed, and a constant of the normal distribution."""


def numbers_in(path: Path) -> set[str]:
    """Names of module-level constants that are numbers."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and not any(
            isinstance(part, ast.Constant) and not isinstance(part.value, int | float)
            for part in ast.walk(node.value)
        ):
            numbers = [part for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
            found |= {ast.unparse(target) for target in node.targets if numbers}
    return found


def test_no_other_module_has_one() -> None:
    judging = [path for path in ROOM.rglob("*.py") if path.parent.name not in OF_OTHER_QUESTIONS]
    found = {str(path.relative_to(ROOM)): numbers_in(path) - WORDING for path in judging}
    limits_found = found.pop("limits.py")
    assert {"NETWORK_SHARE", "LINE_SHARE", "CEILING_OVER_RATE", "BUSY_RATIO"} <= limits_found
    assert {name: numbers for name, numbers in found.items() if numbers} == {}


def test_each_has_its_reason() -> None:
    """The string that follows it."""
    body = ast.parse(Path(limits.__file__).read_text()).body
    for place, node in enumerate(body):
        if isinstance(node, ast.Assign):
            after = body[place + 1]
            assert isinstance(after, ast.Expr), ast.unparse(node)
            assert isinstance(after.value, ast.Constant), ast.unparse(node)
            assert len(str(after.value.value)) > 20, ast.unparse(node)
