"""How do the values of secrets leave an experiment's text, before anything else reads it?

What is left says the same without them: `HF_TOKEN: {from_environment: true}`. So no error message,
no dump, no hash and no model can hold one.
"""

from collections.abc import Iterator
from typing import Any, NoReturn

from broadgauge.specs.document import Assembly, Document, Path
from broadgauge.specs.errors import ExperimentError, Problem
from broadgauge.specs.secret_names import is_secret, without_credentials
from broadgauge.specs.secrets import SecretText, SecretTexts
from broadgauge.specs.variables import holds_secret

ENVIRONMENT = "environment"
WITH_ENVIRONMENT = ("networks", "workloads")
"""Lists whose entries have variables of their own."""


def take_secrets(document: Document) -> tuple[Document, SecretTexts]:
    """The experiment without the values of secrets, and these by name.

    Raises ExperimentError where a secret is no text, is an axis, or has two values; and for one
    text in the place of variables, which may hold one.
    """
    found: dict[str, SecretText] = {}
    declared: dict[Path, dict[str, Any]] = {}
    for path, variables in _environments(document.data):
        if isinstance(variables, str):  # `environment: HF_TOKEN=hf_…`
            _refuse(
                document,
                path,
                f"`{ENVIRONMENT}` takes names with their values, and not one text",
                f"{ENVIRONMENT}: {{NAME: value}}",
            )
        for name, value in variables.items():
            text = _secret_text(document, (*path, name), name, value)
            if text is None:
                continue
            if found.setdefault(name, SecretText(text)).reveal() != text:
                _refuse(
                    document,
                    (*path, name),
                    f"`{name}` has two values: a secret has one in a run",
                    "two experiments are two files",
                )
            declared[*path, name] = declared_form(name, text)
    if not found:
        return document, found
    assembly = Assembly()
    data = assembly.take(document, document.data, at=(), to=())
    for path, form in declared.items():
        _holder(data, path)[path[-1]] = form
    return assembly.document(document.filename, data), found


def _environments(data: Any) -> Iterator[tuple[Path, dict[str, Any] | str]]:
    """All that stands for variables, and where: a mapping, or by mistake a text."""
    if not isinstance(data, dict):
        return
    if isinstance(data.get(ENVIRONMENT), (dict, str)):
        yield (ENVIRONMENT,), data[ENVIRONMENT]
    for key in WITH_ENVIRONMENT:
        entries = data.get(key)
        for i, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict) and isinstance(entry.get(ENVIRONMENT), (dict, str)):
                yield (key, i, ENVIRONMENT), entry[ENVIRONMENT]


def _secret_text(document: Document, path: Path, name: str, value: Any) -> str | None:
    """The secret that stands here; None: it is none, or it is declared already."""
    if isinstance(value, dict):
        return None
    if isinstance(value, list):
        if is_secret(name) or any(_has_credentials(item) for item in value):
            _refuse(document, path, f"`{name}` is a secret, and a secret is no axis")
        return None
    if isinstance(value, str):
        if not holds_secret(name, value):
            return None
        if "\0" in value:
            _refuse(document, path, f"`{name}`: a variable can't hold a NUL character")
        return value
    if is_secret(name):
        _refuse(
            document,
            path,
            f"`{name}` is a secret, and a secret is text",
            f"in quotes, or {name}: {{from_environment: true}}",
        )
    return None


def _has_credentials(value: Any) -> bool:
    return isinstance(value, str) and without_credentials(value) != value


def declared_form(name: str, text: str) -> dict[str, Any]:
    """What stands in the secret's place. Of a URL, the rest is no secret."""
    form: dict[str, Any] = {"from_environment": True}
    return form if is_secret(name) else form | {"shown": without_credentials(text)}


def _holder(data: Any, path: Path) -> Any:
    for part in path[:-1]:
        data = data[part]
    return data


def _refuse(document: Document, path: Path, message: str, hint: str | None = None) -> NoReturn:
    raise ExperimentError([Problem(document.where(path), message, hint)])
