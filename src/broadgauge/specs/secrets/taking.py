"""How do the values of secrets leave an experiment's text, before anything else reads it?

What is left says the same without them: `HF_TOKEN: {from_environment: true}`. So no error message,
no dump, no hash and no model can hold one.
"""

import difflib
from collections.abc import Collection, Iterator
from typing import Any, NoReturn

from broadgauge.specs.errors import ExperimentError, Problem
from broadgauge.specs.secrets.names import is_secret, without_credentials
from broadgauge.specs.secrets.values import SHORTEST_LOOKED_FOR, SecretText, SecretTexts
from broadgauge.specs.secrets.variables import FromEnvironment, holds_secret
from broadgauge.specs.text.document import Assembly, Document, KeyPath

ENVIRONMENT = "environment"
WITH_ENVIRONMENT = ("networks", "workloads")
"""Lists whose entries have variables of their own."""


def take_secrets(document: Document) -> tuple[Document, SecretTexts]:
    """The experiment without the values of secrets, and these by name.

    Raises ExperimentError where a secret is no text, is an axis, or has two values; and for one
    text in the place of variables, which may hold one.
    """
    found: dict[str, SecretText] = {}
    declared: dict[KeyPath, dict[str, Any]] = {}
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
                _refuse_second(document, (*path, name))
            declared[*path, name] = declared_form(name, text)
    declared |= _copies(document, found, declared.keys())
    if not found:
        return document, found
    assembly = Assembly()
    data = assembly.take(document, document.data, at=(), to=())
    for path, form in declared.items():
        _holder(data, path)[path[-1]] = form
    return assembly.document(document.filename, data), found


def _copies(
    document: Document, found: dict[str, SecretText], taken: Collection[KeyPath]
) -> dict[KeyPath, dict[str, Any]]:
    """The variables of other names that hold a secret's value, as by a YAML alias: they are secret,
    too, and are added to `found`. A text elsewhere that holds one is refused."""
    values = {
        name: text.reveal()
        for name, text in found.items()
        if is_secret(name) and len(text.reveal()) >= SHORTEST_LOOKED_FOR
    }
    copies: dict[KeyPath, dict[str, Any]] = {}
    variables = {
        (*path, name): value
        for path, environment in _environments(document.data)
        if isinstance(environment, dict)
        for name, value in environment.items()
    }
    for path, text in _texts(document.data):
        secret = next((name for name, value in values.items() if value in text), None)
        if secret is None or path in taken:
            continue
        if path not in variables:
            _refuse(
                document,
                path,
                f"the value of the secret `{secret}` stands here, and would be stored",
                f"let what runs read the variable `{secret}`",
            )
        name = str(path[-1])
        if found.setdefault(name, SecretText(text)).reveal() != text:
            _refuse_second(document, path)
        copies[path] = {"from_environment": True}
    return copies


def _texts(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Every text of the experiment, and where it stands."""
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, (dict, list)):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for key, item in items:
            yield from _texts(item, (*path, key))


def _environments(data: Any) -> Iterator[tuple[KeyPath, dict[str, Any] | str]]:
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


def _secret_text(document: Document, path: KeyPath, name: str, value: Any) -> str | None:
    """The secret that stands here; None: it is none, or it is declared already."""
    if isinstance(value, dict):
        if is_secret(name) and any(_is_no_key(key) for key in value):  # `{hf_…}` is a mapping
            _refuse(
                document,
                path,
                f"`{name}` is a secret, and a secret is text",
                f"without braces, or {name}: {{from_environment: true}}",
            )
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


def _is_no_key(key: str) -> bool:
    """Neither one of a declared secret's, nor one that was mistyped."""
    known = FromEnvironment.model_fields
    return key not in known and not difflib.get_close_matches(key, known)


def _has_credentials(value: Any) -> bool:
    return isinstance(value, str) and without_credentials(value) != value


def declared_form(name: str, text: str) -> dict[str, Any]:
    """What stands in the secret's place. Of a URL, the rest is no secret."""
    form: dict[str, Any] = {"from_environment": True}
    return form if is_secret(name) else form | {"shown": without_credentials(text)}


def _holder(data: Any, path: KeyPath) -> Any:
    for part in path[:-1]:
        data = data[part]
    return data


def _refuse_second(document: Document, path: KeyPath) -> NoReturn:
    message = f"`{path[-1]}` has two values: a secret has one in a run"
    _refuse(document, path, message, "two experiments are two files")


def _refuse(document: Document, path: KeyPath, message: str, hint: str | None = None) -> NoReturn:
    raise ExperimentError([Problem(document.where(path), message, hint)])
