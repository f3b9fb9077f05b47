"""How is plain data written as YAML that every reader reads alike?

ruamel.yaml writes YAML 1.2, and kubectl reads 1.1: `no`, `1_000`, `12:30` and `0o14` are text to
the one and something else to the other. So whatever is not plainly a word stands in double quotes.
Source: YAML 1.1, 5.1 (printable characters) and its types; YAML 1.2.2, 8.1.2.
"""

import io
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

Manifest = dict[str, Any]
"""One object, as the API server takes it."""
_WORD = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
_NO_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_PLAIN_LINE = re.compile(r"[\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*")
_WHOLE_LINE = 2**31
"""No line is folded: people search in it."""


def yaml_text(data: Manifest | list[Manifest]) -> str:
    """One document without its `---`, keys in the given order. Raises TypeError for what JSON has
    not."""
    writer = YAML()
    writer.width = _WHOLE_LINE
    writer.allow_unicode = True
    writer.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    writer.dump(_marked(data), stream)
    return stream.getvalue()


def _marked(value: object) -> Any:
    """Each text with the form that it is written in."""
    if isinstance(value, dict):
        return {_text(key): _marked(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_marked(item) for item in value]
    if isinstance(value, str):
        return LiteralScalarString(value) if _is_block(value) else _text(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    raise TypeError(f"no plain data of a manifest: {value!r}")


def _text(text: str) -> str:
    is_word = _WORD.fullmatch(text) is not None and text.lower() not in _NO_WORDS
    return text if is_word else DoubleQuotedScalarString(text)


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
