"""Is this text an experiment? If not, what is wrong, where, and what was probably meant?"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from broadgauge.specs.base import NAME_PATTERN, VARIABLE_PATTERN, did_you_mean
from broadgauge.specs.errors import ExperimentError, Problem
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.network import Network, NodePath
from broadgauge.specs.workload import METRIC_NAME_PATTERN
from broadgauge.specs.yaml_source import Document, Path, parse_yaml

_KINDS = ("collectives", "command", "train")
_NETWORKS: dict[str, type[BaseModel]] = {"between": Network, "inside": NodePath}
"""The tags of specs/network.py; they are in no file."""
MAX_SHOWN = 8
_RULES = {
    NAME_PATTERN: (
        "a name is at most 63 lower-case letters, digits, `-`, `_` and `.`, "
        "the first a letter or a digit",
        r"[^a-z0-9._-]+",
        "-",
    ),
    METRIC_NAME_PATTERN: (
        "a metric's name is lower-case letters, digits and `_`, the first a letter",
        r"[^a-z0-9_]+",
        "_",
    ),
    VARIABLE_PATTERN: (
        "a variable's name is letters, digits and `_`, the first no digit",
        r"$.",
        "",
    ),
}
"""Of each pattern: what it says in words, what it refuses, and what to write in its place."""
_WORDS = (
    (r"valid tuple", "list"),
    (r"[Tt]uple should have", "the list should have"),
    (r" after validation", ""),
    (r"valid dictionary( or instance of \w+)?", "mapping of keys to values"),
)


def read_experiment(text: str, filename: str, overrides: Sequence[str] = ()) -> Experiment:
    """The validated experiment. Raises ExperimentError with `file:line:column` of each problem.

    `overrides` are `a.b=c` texts: a dotted path, where an item of a list is named by its position
    or its `name`, and a YAML value.
    """
    document = parse_yaml(text, filename)
    for override in overrides:
        document = apply_override(document, override)
    if not isinstance(document.data, dict):
        raise ExperimentError(
            [Problem(document.where(()), "an experiment is a mapping of keys to values")]
        )
    try:
        return Experiment.model_validate(document.data)
    except ValidationError as error:
        raise ExperimentError(_shown(list(_problems(document, error)))) from error


def _problems(document: Document, error: ValidationError) -> Iterator[Problem]:
    """One problem for each place, in the order of the file's structure."""
    places: set[Path] = set()
    for detail in error.errors():
        is_about_a_key = detail["type"] in ("missing", "extra_forbidden")
        path = _file_path(document.data, detail["loc"])
        place = detail["loc"] if is_about_a_key else path
        if place in places or not _is_of_the_branch_taken(detail, document.data):
            continue
        places.add(place)
        yield _problem(document, path, detail)


def _shown(problems: list[Problem]) -> list[Problem]:
    unique = list({str(problem): problem for problem in problems}.values())
    rest = len(unique) - MAX_SHOWN
    if rest > 0:
        unique[MAX_SHOWN:] = [Problem(unique[0].where.split(":")[0], f"and {rest} more problems")]
    return unique


def apply_override(document: Document, override: str) -> Document:
    """The document with one part set from `--set a.b=c`."""
    flag = f"--set {override}"
    key_text, equals, value_text = override.partition("=")
    if not equals or not key_text.strip():
        raise ExperimentError([Problem(flag, "`--set` takes key=value", "--set launches=3")])
    keys = key_text.strip().split(".")
    value = parse_yaml(value_text, flag).data if value_text.strip() else None
    path: Path = ()
    target = document.data
    for i, key in enumerate(keys):
        step, target_type_ok = _step(target, key)
        if not target_type_ok:
            seen = ".".join(keys[:i]) or "the experiment"
            raise ExperimentError([_no_such_part(flag, key, seen, target)])
        path = (*path, step)
        if i == len(keys) - 1:
            target[step] = value
        else:
            if isinstance(target, dict) and not isinstance(target.get(step), (dict, list)):
                target[step] = {}
            target = target[step]
    return Document(
        filename=document.filename,
        data=document.data,
        places=document.places,
        overridden=document.overridden | {path: flag},
    )


def _step(target: Any, key: str) -> tuple[str | int, bool]:
    if isinstance(target, dict):
        return key, True
    if isinstance(target, list):
        if key.isdigit() and int(key) < len(target):
            return int(key), True
        for i, item in enumerate(target):
            if isinstance(item, dict) and key in (item.get("name"), item.get("kind")):
                return i, True
    return key, False


def _no_such_part(flag: str, key: str, seen: str, target: Any) -> Problem:
    names = [
        str(item.get("name", item.get("kind")))
        for item in (target if isinstance(target, list) else ())
        if isinstance(item, dict)
    ]
    return Problem(flag, f"`{seen}` has no part `{key}`", did_you_mean(key, names))


def _problem(document: Document, path: Path, detail: ErrorDetails) -> Problem:
    kind = detail["type"]
    where = document.where(path)
    name = _shown_name(path if kind not in ("missing", "extra_forbidden") else detail["loc"])
    if kind == "placed":
        context = detail["ctx"]
        blamed = _file_path(document.data, (*detail["loc"], *context["path"]))
        return Problem(document.where(blamed), context["message"], context["hint"])
    if kind == "extra_forbidden":
        return Problem(where, f"unknown key `{name}`", did_you_mean(name, _keys_at(detail)))
    if kind in ("literal_error", "union_tag_invalid"):
        return _wrong_choice(where, name, detail)
    if kind == "string_pattern_mismatch":
        return _wrong_text(where, name, detail)
    if kind in ("missing", "union_tag_not_found"):
        missing = name if kind == "missing" else "kind"
        kinds = f"kinds: {', '.join(sorted(_KINDS))}" if missing == "kind" else None
        return Problem(where, f"`{missing}` is missing", kinds)
    return _as_told(where, name, path, detail)


def _as_told(where: str, name: str, path: Path, detail: ErrorDetails) -> Problem:
    """In the words of a rule of ours or of pydantic."""
    message = _in_words_of_yaml(detail["msg"].removeprefix("Value error, "))
    message = message[:1].lower() + message[1:]
    if not path or isinstance(detail["input"], (dict, list)):
        return Problem(where, message)
    seen = _short(detail["input"])
    if f"`{seen}`" not in message:
        message = f"{message}, not `{seen}`"
    return Problem(where, f"`{name}`: {message}")


def _shown_name(path: Sequence[str | int]) -> str:
    """`("cluster", "shapes", 1)` → `shapes[1]`."""
    words = [i for i, part in enumerate(path) if isinstance(part, str)]
    if not words:
        return "the experiment"
    start = words[-1]
    return str(path[start]) + "".join(f"[{part}]" for part in path[start + 1 :])


def _wrong_choice(where: str, name: str, detail: ErrorDetails) -> Problem:
    context = detail.get("ctx", {})
    if detail["type"] == "union_tag_invalid":
        seen, name = str(context.get("tag")), "kind"
        expected = str(context.get("expected_tags"))
    else:
        seen = _short(detail["input"])
        expected = str(context.get("expected"))
    choices = [choice.strip(" '") for choice in expected.replace(" or ", ",").split(",")]
    hint = did_you_mean(seen, choices) or f"one of {', '.join(choices)}"
    return Problem(where, f"`{name}` can't be `{seen}`", hint)


def _wrong_text(where: str, name: str, detail: ErrorDetails) -> Problem:
    """What may such a text hold? In words; with the text made valid where that can be guessed."""
    pattern, seen = str(detail.get("ctx", {}).get("pattern")), str(detail["input"])
    if pattern not in _RULES:
        return Problem(where, f"`{name}`: must match {pattern}, not `{_short(seen)}`")
    rule, refused, filler = _RULES[pattern]
    valid = re.sub(refused, filler, seen.lower()).strip("._-")[:63]
    hint = f"for example `{valid}`" if re.fullmatch(pattern, valid) else None
    return Problem(where, f"`{name}`: {rule}, not `{_short(seen)}`", hint)


def _in_words_of_yaml(message: str) -> str:
    """pydantic names Python's types; a file has lists and mappings."""
    for pythons, ours in _WORDS:
        message = re.sub(pythons, ours, message)
    return message


def _is_of_the_branch_taken(detail: ErrorDetails, data: Any) -> bool:
    """pydantic reports every branch of `SizeRange | tuple`; a mapping was meant as the first."""
    for i, part in enumerate(detail["loc"]):
        if _is_union_tag(detail["loc"], i):
            continue
        if _has(data, part):
            data = data[part]
        elif str(part).startswith(("function-after[_in_order", "tuple[")):
            return isinstance(data, dict) != str(part).startswith("tuple[")
    if detail["type"] == "too_short":  # also reported of a list whose items are wrong
        return bool(len(detail["input"]) < detail["ctx"]["min_length"])
    return True


def _file_path(data: Any, location: Path) -> Path:
    """The location in the file: without the parts that pydantic adds for branches."""
    path: Path = ()
    for i, part in enumerate(location):
        if _has(data, part) and not _is_union_tag(location, i):
            data = data[part]
            path = (*path, part)
    return path


def _is_union_tag(location: Path, i: int) -> bool:
    """`command` in `workloads[0].command.metrics` is the `kind`, and also the name of a key."""
    if i != 2:
        return False
    tags = {"workloads": _KINDS, "networks": tuple(_NETWORKS)}
    return location[2] in tags.get(str(location[0]), ())


def _has(data: Any, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _keys_at(detail: ErrorDetails) -> list[str]:
    """The keys that are known where an unknown one was found."""
    model: Any = Experiment
    for part in detail["loc"][:-1]:
        if isinstance(part, int):
            continue
        model = _branch(model, str(part))
        if model is None:
            return []
    return list(model.model_fields)


def _branch(model: Any, part: str) -> type[BaseModel] | None:
    field = model.model_fields.get(part)
    if field is None:
        if part.endswith(f"{model.__name__}]") or part in _discriminators(model):
            return model  # type: ignore[no-any-return]
        return _named_branch(part)
    models = list(_models_in(field.annotation))
    return models[0] if models else None


def _discriminators(model: type[BaseModel]) -> tuple[str, ...]:
    kind = model.model_fields.get("kind")
    return () if kind is None else get_args(kind.annotation)


def _named_branch(part: str) -> type[BaseModel] | None:
    if part in _NETWORKS:
        return _NETWORKS[part]
    workloads = _models_in(Experiment.model_fields["workloads"].annotation)
    return next((model for model in workloads if part in _discriminators(model)), None)


def _models_in(annotation: Any) -> Iterable[type[BaseModel]]:
    """Every model inside an annotation such as `tuple[Annotated[A | B, …], ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
