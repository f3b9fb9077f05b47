"""What does `--set a.b=c` change in an experiment?"""

import re
from collections.abc import Sequence
from typing import Any, get_args

from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import ExperimentError, Problem
from broadgauge.specs.platforms import PLANNED_PLATFORMS, PlatformKind
from broadgauge.specs.secrets.names import MASK, is_secret, url_secrets, without_credentials
from broadgauge.specs.secrets.taking import ENVIRONMENT
from broadgauge.specs.secrets.token_forms import TOKEN
from broadgauge.specs.text.document import Document, KeyPath, outlived
from broadgauge.specs.text.like import in_full
from broadgauge.specs.text.yaml_source import parse_yaml

DECLARING = "from_environment"
_WORD = re.compile(r"[A-Za-z_]\w*")


def apply_overrides(document: Document, overrides: Sequence[str]) -> Document:
    """The document with these parts set, in turn. Raises ExperimentError."""
    if any(each.partition("=")[0].strip() == "platform" for each in overrides):
        _refuse_unknown_platforms(document)
    for override in overrides:
        document = apply_override(document, override)
    return document


def _refuse_unknown_platforms(document: Document) -> None:
    """`--on` and `render` take another: a mistyped one in the file would stay."""
    told = document.data.get("platform") if isinstance(document.data, dict) else None
    places: dict[KeyPath, Any] = {("platform",): told}
    if isinstance(told, list):
        places = {("platform", i): each for i, each in enumerate(told)}
    known = get_args(PlatformKind)
    for path, each in places.items():
        if isinstance(each, str) and each not in (*known, *PLANNED_PLATFORMS):
            problem = f"`platform` can't be `{each}`"
            hint = did_you_mean(each, known)
            raise ExperimentError([Problem(document.where(path), problem, hint)])


def apply_override(document: Document, override: str) -> Document:
    """The document with one part set from `--set a.b=c`."""
    key_text, equals, value_text = override.partition("=")
    flag = _flag(override)
    if not equals or not key_text.strip():
        raise ExperimentError([Problem(flag, "`--set` takes key=value", "--set launches=3")])
    keys = key_text.strip().split(".")
    value = parse_yaml(value_text, flag).data if value_text.strip() else None
    path: KeyPath = ()
    target = document.data
    for i, key in enumerate(keys):
        step, target_type_ok = _step(target, key)
        if not target_type_ok:
            seen = ".".join(keys[:i]) or "the experiment"
            raise ExperimentError([_no_such_part(flag, key, seen, target)])
        path = (*path, step)
        if i == len(keys) - 1:
            target[step] = value
            for ground in outlived({str(step)}, path[:-1]):
                target.pop(ground, None)
        else:
            if isinstance(target, dict) and not isinstance(target.get(step), (dict, list)):
                inside = in_full(target.get(step), path)
                target[step] = inside if isinstance(inside, dict) else {}
            target = target[step]
    return Document(
        filename=document.filename,
        data=document.data,
        places={at: place for at, place in document.places.items() if at[: len(path)] != path},
        overridden=document.overridden | {path: flag},
    )


def _flag(override: str) -> str:
    """As it was typed, for errors; the value of a secret is left out."""
    key, equals, value = override.partition("=")
    keys = key.strip().split(".")
    is_named = keys[-1] == ENVIRONMENT or any(map(is_secret, keys))
    is_hidden = is_named or _may_hold_secret(value)
    if not equals and any(map(is_secret, _WORD.findall(key))):
        return f"--set {MASK}"
    return f"--set {key}{equals}{MASK if is_hidden else value}"


def _may_hold_secret(value: str) -> bool:
    """Does it name a variable that is one, declare one, hold a token, or a URL with a secret?"""
    is_named = any(word == DECLARING or is_secret(word) for word in _WORD.findall(value))
    is_url = without_credentials(value) != value or bool(url_secrets(value))
    return is_named or is_url or bool(TOKEN.search(value))


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
