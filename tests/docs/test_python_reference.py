"""docs/python-reference.md says what the docstrings say today."""

import importlib.util
from pathlib import Path

import broadgauge


def test_the_reference_is_current_and_whole(repository: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        "python_reference", repository / "scripts" / "python_reference.py"
    )
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    stored = (repository / "docs" / "python-reference.md").read_text(encoding="utf-8")
    assert script.page() == stored, "python scripts/python_reference.py"
    named = {*script.FUNCTIONS, *script.ERRORS, *(kind.__name__ for kind in script.GIVEN)}
    assert {*broadgauge.__all__} - {"__version__"} <= named
