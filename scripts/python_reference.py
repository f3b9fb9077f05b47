"""Writes docs/python-reference.md from the docstrings: `python scripts/python_reference.py`."""

import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path

import broadgauge
from broadgauge.api.case import Case
from broadgauge.api.comparing import Comparison
from broadgauge.api.doctor import Diagnosed
from broadgauge.api.predicting import Predictions
from broadgauge.api.progress import Progress
from broadgauge.api.sensitivity import Ladders
from broadgauge.api.whatif import Changed
from broadgauge.predict.prediction import Interval, Prediction
from broadgauge.specs.estimate import Estimate

PAGE = Path(__file__).parents[1] / "docs" / "python-reference.md"
FIRST = """\
# Python: every name

From the docstrings, by `python scripts/python_reference.py`; `help(broadgauge.run)` says the same.
[python.md](python.md) shows them at work. The unit of a number is the end of its name.
"""
FUNCTIONS = (
    *("run", "resume", "open_run", "list_runs", "compare", "sensitivity", "whatif"),
    "doctor",
    *("predict", "predict_here", "calibrate", "load_catalog"),
)
GIVEN = (
    *(broadgauge.Run, Case, Estimate, broadgauge.Table, Progress, Comparison, Changed),
    *(Ladders, Predictions, Prediction, Interval, Diagnosed),
)
ERRORS = ("BroadgaugeError", "InputError", "PlatformError", "RunFolderError")


def page() -> str:
    """All of it, as Markdown."""
    parts = [FIRST, "## Functions\n"]
    parts += [_function(name) for name in FUNCTIONS]
    parts.append("## What they give\n")
    parts += ["\n".join(_class(kind)) for kind in GIVEN]
    parts.append("## Errors\n")
    parts += [_error(name) for name in ERRORS]
    return "\n".join(parts)


def _function(name: str) -> str:
    function = getattr(broadgauge, name)
    return f"### {name}\n\n{_code(_signature(name, function), inspect.getdoc(function) or '')}"


def _class(kind: type) -> Iterator[str]:
    yield f"### {kind.__name__}\n\n{_code('', inspect.getdoc(kind) or '')}"
    members = [*_fields(kind), *_members(kind)]
    if members:
        yield "| | |\n| --- | --- |"
        yield from (f"| `{_cell(name)}` | {_cell(text)} |" for name, text in members)
        yield ""


def _fields(kind: type) -> Iterator[tuple[str, str]]:
    """Of a dataclass: names and types, with the text that stands below each in the source."""
    lines = inspect.getsource(kind).splitlines()
    for place, line in enumerate(lines):
        name, colon, annotation = line.strip().partition(": ")
        if name in getattr(kind, "__dataclass_fields__", {}) and colon and name[:1] != "_":
            below = "\n".join(lines[place + 1 :]).lstrip()
            said = below.split('"""')[1] if below.startswith('"""') else ""
            yield f"{name}: {annotation.partition(' = ')[0]}", _line(said)


def _members(kind: type) -> Iterator[tuple[str, str]]:
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield name, _line(inspect.getdoc(member.fget))
        elif inspect.isfunction(member):
            parameters = list(inspect.signature(member).parameters.values())[1:]
            shown = ", ".join(str(each).replace("'", "") for each in parameters)
            yield f"{name}({shown})", _line(inspect.getdoc(member))


def _line(text: str | None) -> str:
    """All of it in one cell."""
    return " ".join((text or "").split())


def _cell(text: str) -> str:
    """A bar would begin the next cell."""
    return text.replace("|", "\\|")


def _signature(name: str, function: object) -> str:
    """One parameter a line, as it stands in the source."""
    lines = inspect.getsource(function).splitlines()  # type: ignore[arg-type]
    assert lines[0].startswith(f"def {name}(")
    is_last = (line.startswith((")", "def ")) and line.endswith(":") for line in lines)
    end = next(place for place, is_end in enumerate(is_last) if is_end)
    return "\n".join(lines[: end + 1]).removesuffix(":")


def _error(name: str) -> str:
    kind = getattr(broadgauge, name)
    above = kind.__mro__[1].__name__
    return f"- `{name}` (kind of `{above}`): {_line(inspect.getdoc(kind))}"


def _code(signature: str, text: str) -> str:
    body = f"{signature}\n\n{text}".strip()
    return f"```text\n{textwrap.dedent(body)}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
