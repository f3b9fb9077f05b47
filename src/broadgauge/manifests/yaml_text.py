"""How is plain data written as YAML that every reader reads alike?

YAML 1.1 (kubectl's) takes `no`, `1_000` and `12:30` for something else than text, and YAML 1.2 does
not: whatever is not plainly a word stands in double quotes, as JSON has them.
Source: YAML 1.1, 5.1 (printable characters) and its types; YAML 1.2.2, 7.3.1 and 8.1.2.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

Manifest = dict[str, Any]
"""One object, as the API server takes it."""
_WORD = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
_NO_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_PLAIN_LINE = re.compile(r"[\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*")
_INDENT = "  "


def yaml_text(data: Manifest) -> str:
    """One document without its `---`, keys in the given order."""
    return "".join(f"{line}\n" if line else "\n" for line in _mapping(data, 0))


def scalar(value: object) -> str:
    """On one line. Raises TypeError for what JSON has not."""
    if isinstance(value, str):
        return value if _is_word(value) else quoted(value)
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise TypeError(f"no plain data: {value!r}")


def _is_word(text: str) -> bool:
    return bool(_WORD.fullmatch(text)) and text.lower() not in _NO_WORDS


def quoted(text: str) -> str:
    """JSON's form; characters that YAML does not print are escaped as it knows them."""
    shown = json.dumps(text, ensure_ascii=False)
    return "".join(
        each if _PLAIN_LINE.fullmatch(each) or ord(each) > 0xFFFF else f"\\u{ord(each):04x}"
        for each in shown
    )


def _is_block(text: str) -> bool:
    """Several lines that can stand as they are."""
    lines = text.removesuffix("\n").split("\n")
    return (
        len(lines) > 1
        and all(_PLAIN_LINE.fullmatch(line) for line in lines)
        and lines[0][:1] not in ("", " ")
        and lines[-1].strip() != ""
        and not any(line and not line.strip() for line in lines)
    )


def _mapping(data: Manifest, depth: int) -> Iterator[str]:
    for key, value in data.items():
        yield from _entry(f"{_INDENT * depth}{scalar(key)}:", value, depth)


def _entry(head: str, value: object, depth: int) -> Iterator[str]:
    """What stands behind `key:` or `-`."""
    if isinstance(value, dict) and value:
        yield head
        yield from _mapping(value, depth + 1)
    elif isinstance(value, (list, tuple)) and value:
        yield head
        yield from _sequence(value, depth + 1)
    elif isinstance(value, (dict, list, tuple)):
        yield f"{head} {'{}' if isinstance(value, dict) else '[]'}"
    elif isinstance(value, str) and _is_block(value):
        yield f"{head} |{'' if value.endswith(chr(10)) else '-'}"
        for line in value.removesuffix("\n").split("\n"):
            yield f"{_INDENT * (depth + 1)}{line}" if line else ""
    else:
        yield f"{head} {scalar(value)}"


def _sequence(values: "list[Any] | tuple[Any, ...]", depth: int) -> Iterator[str]:
    dash = f"{_INDENT * depth}-"
    for value in values:
        if isinstance(value, dict) and value:
            first, *rest = _mapping(value, depth + 1)
            yield f"{dash} {first.lstrip(' ')}"
            yield from rest
        else:
            yield from _entry(dash, value, depth)
