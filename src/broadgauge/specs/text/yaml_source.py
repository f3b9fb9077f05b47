"""What does a YAML text say, and on which line and column does each part of it stand?

YAML 1.2: `no` stays a word and `50e9` is a number. Only plain data: no tags, no objects. Texts are
bounded in size, in nesting, and in how many values their aliases expand to.
"""

import math
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import CollectionStartEvent, Event
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from broadgauge.specs.errors import ExperimentError, Problem
from broadgauge.specs.secrets.names import is_secret
from broadgauge.specs.text.document import Document, KeyPath

MAX_TEXT_BYTES = 2**20
MAX_VALUES = 50_000
MAX_DEPTH = 50

_INTEGER = re.compile(r"[-+]?\d+")
_FLOAT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_PLAIN_KINDS = ("str", "int", "float", "bool", "null", "timestamp")  # 1.2 has no timestamps: text
_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in _PLAIN_KINDS}
_NAMED = re.compile(r"\b(alias|anchor|tag handle)\b.*", re.DOTALL)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF|nan|NaN|NAN)")


def parse_yaml(text: str, filename: str) -> Document:
    """Raises ExperimentError with the place of what can't be read."""
    if len(text) > MAX_TEXT_BYTES:
        size = f"{len(text):,} characters"
        raise _error(filename, f"the text has {size}; at most {MAX_TEXT_BYTES:,} are read")
    node = _compose(text, filename)
    if node is None:
        raise _error(filename, "the file is empty", "`broadgauge schema` prints what goes in")
    places: dict[KeyPath, str] = {}
    values = _Values(filename, places)
    data = values.build(node, (), 0)
    return Document(filename=filename, data=data, places=places)


def _compose(text: str, filename: str) -> Node | None:
    try:
        yaml = YAML(typ="safe", pure=True)
        yaml.Composer = partial(_BoundedComposer, filename)
        return yaml.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = filename if mark is None else f"{filename}:{mark.line + 1}:{mark.column + 1}"
        # What is named may be a secret that begins with `*`, `&` or `!`.
        problem = _NAMED.sub(r"\1", str(error.problem or error.context or "not YAML"))
        raise _error(where, f"not YAML: {problem.strip()}", _syntax_hint(problem)) from error
    except YAMLError as error:
        first_line = str(error).strip().splitlines()[0]
        raise _error(filename, f"not YAML: {first_line}") from error
    except (RecursionError, ValueError) as error:
        raise _error(filename, f"not YAML that can be read: {error}") from error


class _BoundedComposer(Composer):  # type: ignore[misc]  # ruamel says no types of it
    """Raises ExperimentError for too many values, too deep, when it meets the first.

    Not after all is composed: the time for that grows with the square of the depth.
    """

    def __init__(self, filename: str, **parts: Any) -> None:
        super().__init__(**parts)
        self.filename = filename
        self.halves = 0
        """Of values: a mapping's key and its value are one together, as for `_Values`."""
        self.num_open = 0
        """Collections around the node."""

    def compose_node(self, parent: Node | None, index: Any) -> Node:
        self.halves += 1 if isinstance(parent, MappingNode) else 2
        event = self.parser.peek_event()
        if self.halves > 2 * MAX_VALUES:
            raise _error(_where(event, self.filename), f"more than {MAX_VALUES:,} values")
        is_collection = isinstance(event, CollectionStartEvent)
        if is_collection and self.num_open > MAX_DEPTH:  # the document itself is no nesting
            raise _error(_where(event, self.filename), f"nested more than {MAX_DEPTH} deep")
        self.num_open += is_collection
        node: Node = super().compose_node(parent, index)
        self.num_open -= is_collection
        return node


def _syntax_hint(problem: str) -> str | None:
    if "\\t" in problem or "'\t'" in problem:
        return "indent with spaces, not tabs"
    if "mapping values are not allowed" in problem:
        return "text with `: ` in it needs quotes"
    if "undefined alias" in problem:
        return "text that begins with `*` needs quotes"
    if "another document" in problem:
        return "one experiment a file: remove the `---` between documents"
    return None


def _error(where: str, message: str, hint: str | None = None) -> ExperimentError:
    return ExperimentError([Problem(where, message, hint)])


class _Values:
    """Turns nodes into plain values, notes their places, and counts what aliases expand to."""

    def __init__(self, filename: str, places: dict[KeyPath, str]) -> None:
        self.filename = filename
        self.places = places
        self.count = 0

    def build(self, node: Node, path: KeyPath, depth: int) -> Any:
        self.count += 1
        if self.count > MAX_VALUES:
            raise self.problem(node, f"more than {MAX_VALUES:,} values (aliases count each time)")
        if depth > MAX_DEPTH:
            raise self.problem(node, f"nested more than {MAX_DEPTH} deep")
        self.places.setdefault(path, self.where(node))
        if isinstance(node, MappingNode):
            return dict(self._entries(node, path, depth))
        if isinstance(node, SequenceNode):
            items = enumerate(node.value)
            return [self.build(item, (*path, i), depth + 1) for i, item in items]
        assert isinstance(node, ScalarNode)
        return self._scalar(node, path)

    def _entries(self, node: MappingNode, path: KeyPath, depth: int) -> Iterator[tuple[str, Any]]:
        seen: dict[str, Node] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                raise self.problem(key_node, "a key must be a word")
            key = str(key_node.value)
            if key == "<<":
                raise self.problem(key_node, "merge keys (`<<`) are not part of YAML 1.2")
            if key in seen:
                line = _line_and_column(seen[key])[0]
                shown = "a key" if _is_in_secret(path) else f"`{key}`"
                raise self.problem(key_node, f"{shown} stands twice, first on line {line}")
            seen[key] = key_node
            self.places[(*path, key)] = self.where(key_node)
            yield key, self.build(value_node, (*path, key), depth + 1)

    def _scalar(self, node: ScalarNode, path: KeyPath) -> Any:
        text = str(node.value)
        tag = str(node.tag)
        if tag not in _PLAIN_TAGS:
            # Not the text: an alias may put it in a secret's place.
            shown = "with a tag" if _is_in_secret(path) else f"tagged `{tag}`"
            raise self.problem(node, f"a value is {shown}; only plain values are read")
        if node.style in ("'", '"', "|", ">"):
            return text
        if tag.endswith(":null"):
            return None
        if tag.endswith(":bool"):
            return text.lower() == "true"
        if _NOT_FINITE.fullmatch(text):
            raise self.problem(node, f"`{text}` is no number that can be used here")
        if _INTEGER.fullmatch(text) and len(text) <= 40:
            return int(text)
        if _FLOAT.fullmatch(text) and len(text) <= 40:
            if not math.isfinite(float(text)):
                shown = "this" if _is_in_secret(path) else f"`{text}`"
                raise self.problem(node, f"{shown} is too large a number")
            return float(text)
        return text

    def problem(self, node: Node, message: str) -> ExperimentError:
        return _error(self.where(node), message)

    def where(self, node: Node) -> str:
        return _where(node, self.filename)


def _is_in_secret(path: KeyPath) -> bool:
    """Does it stand in a secret's place, so that no error may repeat it?"""
    return any(isinstance(part, str) and is_secret(part) for part in path)


def _where(part: Node | Event, filename: str) -> str:
    line, column = _line_and_column(part)
    return f"{filename}:{line}:{column}"


def _line_and_column(part: Node | Event) -> tuple[int, int]:
    return part.start_mark.line + 1, part.start_mark.column + 1
