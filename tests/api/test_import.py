"""Holds that `import broadgauge` loads nothing, and that its names are said the same everywhere."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

import broadgauge

HEAVY = ("numpy", "pydantic", "rich", "ruamel", "pandas", "pyarrow", "torch", "vl_convert")
FUNCTIONS = [name for name in broadgauge.__all__ if name.islower() and name != "__version__"]


def ask(code: str) -> str:
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_the_import_loads_nothing() -> None:
    code = f"""
import sys, broadgauge
dir(broadgauge), broadgauge.__version__
print(*(name for name in {HEAVY!r} if name in sys.modules))
print(*(name for name in sys.modules if name.startswith("broadgauge.")))
"""
    assert ask(code) == ""


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("BroadgaugeError", ("numpy", "pandas", "pyarrow", "torch", "vl_convert")),
        ("open_run", ("pandas", "pyarrow", "torch", "vl_convert")),
        ("run", ("pandas", "pyarrow", "torch", "vl_convert")),
        ("doctor", ("numpy", "pandas", "pyarrow", "torch", "vl_convert")),
        ("predict", ("pandas", "pyarrow", "torch", "vl_convert")),
    ],
)
def test_a_name_loads_no_more_than_it_needs(name: str, absent: tuple[str, ...]) -> None:
    wanted = f"*({set(absent)!r} & sys.modules.keys())"
    assert ask(f"import sys; from broadgauge import {name}; print({wanted})") == ""


def test_a_room_of_the_same_name_hides_no_function() -> None:
    code = """
import broadgauge.predict.case
import broadgauge.doctor.answer
from broadgauge.predict.case import TrainingCase
import broadgauge, sys
assert callable(broadgauge.predict), broadgauge.predict
from broadgauge import doctor, predict
assert callable(doctor) and doctor is broadgauge.doctor
assert predict is broadgauge.predict
assert sys.modules["broadgauge.predict"].case.TrainingCase is TrainingCase
print("function")
"""
    assert ask(code) == "function"


def test_names_are_said_the_same_to_python_and_to_type_checkers() -> None:
    tree = ast.parse(Path(inspect.getfile(broadgauge)).read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.name: (node.module or "").removeprefix("broadgauge.")
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == broadgauge._MODULES
    assert sorted({*imported, "__version__"}) == sorted(broadgauge.__all__)
    assert set(broadgauge.__all__) <= set(dir(broadgauge))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'predcit'"):
        broadgauge.predcit  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_takes_gives_and_raises(name: str) -> None:
    function = getattr(broadgauge, name)
    text = inspect.getdoc(function) or ""
    assert "Raises " in text
    assert "Example: `" in text
    parameters = inspect.signature(function).parameters
    unsaid = [each for each in parameters if each not in text and each not in STANDARD]
    assert unsaid == []
    positional = [p for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert len(positional) <= 2
    assert "return" in get_type_hints(function, vars(sys.modules[function.__module__]))


STANDARD = {"runs_folder", "strategy", "precision", "gradients", "recompute", "framework"}
STANDARD |= {"lora", "int4_base", "cpu_offload", "flash_attention", "compile", "sequence_parallel"}
STANDARD |= {"virtual_stages", "overrides", "files"}
"""Explained by their names, or by the flags of the same name."""
