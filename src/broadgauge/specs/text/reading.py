"""Is this text an experiment? If not, what is wrong, where, and what was probably meant?"""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from broadgauge.specs.base import NAME_PATTERN, did_you_mean
from broadgauge.specs.errors import ExperimentError, Problem
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.networks.network import Network, NodePath
from broadgauge.specs.secrets.taking import take_secrets
from broadgauge.specs.secrets.values import SecretTexts
from broadgauge.specs.secrets.variables import VARIABLE_PATTERN, FromEnvironment
from broadgauge.specs.text.axes import EXPANDED, NEVER_AXES, expand_axes
from broadgauge.specs.text.document import Document, KeyPath
from broadgauge.specs.text.extending import EXTENDS, BaseReader, with_bases
from broadgauge.specs.text.fields import TAGS, alternatives, discriminators, models_in
from broadgauge.specs.text.like import (
    ModelFinder,
    StorageFinder,
    with_known_models,
    with_known_storages,
)
from broadgauge.specs.text.overriding import apply_overrides
from broadgauge.specs.text.plain_messages import value_problem
from broadgauge.specs.text.reading_configs import ConfigReader, with_configs
from broadgauge.specs.text.yaml_source import parse_yaml
from broadgauge.specs.workloads.workload import KINDS, METRIC_NAME_PATTERN, PHASES

_NETWORKS: dict[str, type[BaseModel]] = {"between": Network, "inside": NodePath}
"""The tags of specs/networks/network.py; they are in no file."""
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
_ONE_VALUE_WANTED = (
    *("string_type", "int_type", "float_type", "bool_type", "literal_error"),
    *("dict_type", "model_type", "model_attributes_type", "union_tag_not_found"),
)


def read_experiment(
    text: str,
    filename: str,
    overrides: Sequence[str] = (),
    *,
    read_base: BaseReader | None = None,
    find_model: ModelFinder | None = None,
    find_storage: StorageFinder | None = None,
) -> Experiment:
    """The validated experiment. Raises ExperimentError with `file:line:column` of each problem.

    `overrides` are `a.b=c` texts: a dotted path, where an item of a list is named by its position
    or its `name`, and a YAML value. They apply to what the file and all that it extends say
    together; axes expand last. `read_base` finds what `extends` names, `find_model` the sizes of a
    model that is named, `find_storage` what is said of a storage.
    """
    return read_with_secrets(
        text,
        filename,
        overrides,
        read_base=read_base,
        find_model=find_model,
        find_storage=find_storage,
    )[0]


def read_with_secrets(
    text: str,
    filename: str,
    overrides: Sequence[str] = (),
    *,
    read_base: BaseReader | None = None,
    read_config: ConfigReader | None = None,
    find_model: ModelFinder | None = None,
    find_storage: StorageFinder | None = None,
) -> tuple[Experiment, SecretTexts]:
    """The same, and the values of secrets that stand in the text, which no experiment holds.

    `read_config` finds the `config` of a command; without one it stays a name, and can't be run.
    Without `find_model` a model's name is refused: stored experiments have sizes. So is without
    `find_storage` a storage's `like` whose figures are not there.
    """
    document = with_bases(parse_yaml(text, filename), read_base)
    document = apply_overrides(document, overrides)
    if not isinstance(document.data, dict):
        raise ExperimentError(
            [Problem(document.where(()), "an experiment is a mapping of keys to values")]
        )
    if EXTENDS in document.data:
        problem = f"`{EXTENDS}` stands in the file: no flag sets it"
        raise ExperimentError([Problem(document.where((EXTENDS,)), problem)])
    document, secrets = take_secrets(document)
    document = with_known_models(expand_axes(document), find_model)
    document = with_known_storages(document, find_storage)
    try:
        experiment = Experiment.model_validate(document.data)
    except ValidationError as error:
        raise ExperimentError(_shown(list(_problems(document, error)))) from error
    if read_config is not None:
        experiment = with_configs(experiment, document, read_config)
    return experiment, secrets


def _problems(document: Document, error: ValidationError) -> Iterator[Problem]:
    """One problem for each place, in the order of the file's structure."""
    places: set[KeyPath] = set()
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


def _problem(document: Document, path: KeyPath, detail: ErrorDetails) -> Problem:
    kind = detail["type"]
    where = document.where(path)
    if kind == "placed":
        context = detail["ctx"]
        blamed = _file_path(document.data, (*detail["loc"], *context["path"]))
        return Problem(document.where(blamed), context["message"], context["hint"])
    if kind in ("missing", "extra_forbidden", "union_tag_not_found"):
        return _wrong_key(document, path, detail)
    name = _shown_name(path)
    if isinstance(detail["input"], list) and kind in _ONE_VALUE_WANTED:
        return Problem(where, f"`{name}` takes one value, not a list", _where_axes_are(path))
    if kind in ("literal_error", "union_tag_invalid"):
        return _wrong_choice(where, name, detail)
    if kind == "string_pattern_mismatch":
        return _wrong_text(where, name, detail)
    return _as_told(where, name, path, detail)


def _wrong_key(document: Document, path: KeyPath, detail: ErrorDetails) -> Problem:
    """One that nobody knows, or one that is missing."""
    where, name = document.where(path), _shown_name(detail["loc"])
    if detail["type"] == "extra_forbidden":
        return Problem(where, f"unknown key `{name}`", did_you_mean(name, _keys_at(detail)))
    missing = _tag_key(detail) if detail["type"] == "union_tag_not_found" else name
    if detail["type"] == "union_tag_not_found":
        near = difflib.get_close_matches(missing, map(str, detail["input"]), n=1, cutoff=0.6)
        if near:
            place = document.where((*path, near[0]))
            return Problem(place, f"unknown key `{near[0]}`", did_you_mean(near[0], [missing]))
    kinds = f"kinds: {', '.join(sorted(KINDS))}" if missing == "kind" else None
    if missing == "attachment":
        kinds = "`attachment: pod`, `host-device`, `macvlan`, `sriov`, …"
    return Problem(where, f"`{missing}` is missing", kinds)


def _tag_key(detail: ErrorDetails) -> str:
    """By which key are the models of this place told apart?"""
    key = str(detail.get("ctx", {}).get("discriminator", "")).strip("'()")
    return key if key in TAGS else "kind"


def _where_axes_are(path: KeyPath) -> str:
    """What can be done for somebody who meant each value of a list?"""
    if path[0] == "environment":
        return "in the `environment` of a network or workload a list is an axis"
    if path[0] in EXPANDED and path[-1] in NEVER_AXES:
        return "every other key may be an axis; for this one write an entry for each"
    return "a list is an axis only in an entry of `networks`, `storages` or `workloads`"


def _as_told(where: str, name: str, path: KeyPath, detail: ErrorDetails) -> Problem:
    """In the words of a rule of ours, else of the kind of value that is wanted."""
    if detail["type"] != "value_error":
        return Problem(where, *value_problem(name, detail))
    message = detail["msg"].removeprefix("Value error, ")
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
        name = _tag_key(detail)
        if isinstance(detail["input"].get(name), list):
            hint = _where_axes_are(("workloads", "kind"))
            return Problem(where, f"`{name}` takes one value, not a list", hint)
        seen = str(context.get("tag"))
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


def _is_of_the_branch_taken(detail: ErrorDetails, data: Any) -> bool:
    """pydantic reports every branch of `SizeRange | tuple`; a mapping was meant as the first."""
    for i, part in enumerate(detail["loc"]):
        if _is_union_tag(detail["loc"], i):
            continue
        if _has(data, part):
            data = data[part]
        elif not _is_meant(str(part), data):
            return False
    if detail["type"] == "too_short":  # also reported of a list whose items are wrong
        return bool(len(detail["input"]) < detail["ctx"]["min_length"])
    return True


def _is_meant(branch: str, data: Any) -> bool:
    """Was this branch of a union meant by what stands there? Anything but a branch is."""
    if "tuple[" in branch and not branch.startswith("function-after"):
        return not isinstance(data, dict)
    name = re.sub(r"^function-\w+\[.*, (\w+)\]$", r"\1", branch)
    models = alternatives(Experiment).get(name)
    if models is None or not isinstance(data, dict):
        return models is None
    closest = max(models, key=lambda model: _similarity(model, data))
    return closest.__name__ == name


def _similarity(model: type[BaseModel], data: dict[Any, Any]) -> tuple[int, int]:
    """How many keys are the model's, mistyped ones included, and how many to the letter?"""
    fields = list(model.model_fields)
    near = sum(bool(difflib.get_close_matches(str(key), fields, cutoff=0.6)) for key in data)
    return near, len(model.model_fields.keys() & data.keys())


def _file_path(data: Any, location: KeyPath) -> KeyPath:
    """The location in the file: without the parts that pydantic adds for branches."""
    path: KeyPath = ()
    for i, part in enumerate(location):
        if _has(data, part) and not _is_union_tag(location, i):
            data = data[part]
            path = (*path, part)
    return path


def _is_union_tag(location: KeyPath, i: int) -> bool:
    """`command` in `workloads[0].command.metrics` is the `kind`, and also the name of a key."""
    if i == 3 and location[0] == "workloads":
        return location[2] == "storage" and location[3] in PHASES
    if i != 2:
        return False
    tags = {"workloads": KINDS, "networks": tuple(_NETWORKS)}
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
        if model is FromEnvironment:  # below it is the variable's name, and no more models
            break
    return list(model.model_fields)


def _branch(model: Any, part: str) -> type[BaseModel] | None:
    field = model.model_fields.get(part)
    if field is None:
        if part.endswith(f"{model.__name__}]") or part in discriminators(model):
            return model  # type: ignore[no-any-return]
        return _named_branch(model, part)
    models = list(models_in(field.annotation))
    return models[0] if models else None


def _named_branch(model: type[BaseModel], part: str) -> type[BaseModel] | None:
    """A tag, or the name of a model that pydantic tried among others."""
    if part in _NETWORKS:
        return _NETWORKS[part]
    workloads = models_in(Experiment.model_fields["workloads"].annotation)
    tagged = (workload for workload in workloads if part in discriminators(workload))
    tried = (each for each in alternatives(Experiment).get(model.__name__, ()))
    named = (
        each
        for each in tried
        if each.__name__ == part
        or part.endswith(f" {each.__name__}]")
        or part in discriminators(each)
    )
    return next(tagged, None) or next(named, None)
