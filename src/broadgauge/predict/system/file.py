"""What does a system file say? Read with one clear message where it can't be used, and written."""

from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML

from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import ExperimentError, InputError
from broadgauge.specs.machines.system import SYSTEM_FORMAT, SYSTEM_VERSION, System
from broadgauge.specs.text.document import Document, KeyPath
from broadgauge.specs.text.plain_messages import value_problem
from broadgauge.specs.text.yaml_source import MAX_TEXT_BYTES, parse_yaml
from broadgauge.wording.file_kinds import special_kind

HINT = "`broadgauge calibrate` measures this machine and writes one"


def dump_system(system: System) -> str:
    """YAML; `parse_system(dump_system(x))` is `x`."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = None  # the innermost mappings on a line each
    yaml.sort_base_mapping_type_on_output = False
    yaml.width = 100
    text = StringIO()
    yaml.dump(system.model_dump(mode="json", exclude_none=True), text)
    return text.getvalue()


def read_system(path: Path) -> System:
    """The system of this file. Raises InputError."""
    try:
        kind = special_kind(path.stat().st_mode)
        if kind is not None:
            raise InputError(f"{path}: {kind}, not a system file", hint=HINT)
        with path.open(encoding="utf-8") as file:
            text = file.read(MAX_TEXT_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", hint=HINT) from None
    except IsADirectoryError:
        raise InputError(f"{path}: a folder, not a system file", hint=HINT) from None
    except UnicodeDecodeError as error:
        message = f"{path}: not a text file (byte {error.start} is no UTF-8)"
        raise InputError(message, hint=HINT) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"`{path}` can't be read: {reason}") from None
    return parse_system(text, str(path))


def parse_system(text: str, filename: str) -> System:
    """Raises InputError with the place, the value and a hint."""
    try:
        document = parse_yaml(text, filename)
    except ExperimentError as error:
        problem = error.problems[0]
        raise InputError(f"{problem.where}: {problem.message}", hint=HINT) from None
    _check_kind(document)
    try:
        return System.model_validate(document.data)
    except ValidationError as error:
        raise _problem(document, error) from None


def _check_kind(document: Document) -> None:
    """Is it a system file at all, and of a version that is known?"""
    data = document.data
    if not isinstance(data, dict) or data.get("format") != SYSTEM_FORMAT:
        raise InputError(
            f"{document.filename}: no system file: it does not begin with `format: "
            f"{SYSTEM_FORMAT}`",
            hint=HINT,
        )
    version = data.get("version")
    if version != SYSTEM_VERSION:
        raise InputError(
            f"{document.where(('version',))}: version {version} of a system file; this Broadgauge "
            f"reads version {SYSTEM_VERSION}",
            hint="measure again with `broadgauge calibrate`, or use the newer Broadgauge",
        )


def _problem(document: Document, error: ValidationError) -> InputError:
    """The first thing that is wrong; a file that a program wrote is broken as a whole."""
    first = error.errors()[0]
    place = _place(document.data, first)
    where = document.where(place)
    name = ".".join(map(str, place))
    if first["type"] == "extra_forbidden":
        hint = did_you_mean(str(place[-1]), System.model_fields) if len(place) == 1 else None
        return InputError(f"{where}: unknown key `{name}`", hint=hint or HINT)
    if first["type"] == "missing":
        return InputError(f"{where}: `{name}` is missing", hint=HINT)
    message, hint = value_problem(name, first)
    return InputError(f"{where}: {message}", hint=hint or HINT)


def _place(data: Any, problem: ErrorDetails) -> KeyPath:
    """Where it is in the file: without the parts that pydantic adds for the forms of a value."""
    place: KeyPath = ()
    for part in problem["loc"]:
        is_item = isinstance(data, list) and isinstance(part, int)
        if is_item or (isinstance(data, dict) and part in data):
            data, place = data[part], (*place, part)
    return (*place, problem["loc"][-1]) if problem["type"] == "missing" else place
