"""Are values of files refused in words that say what is wanted, and never in pydantic's?"""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import Field, ValidationError, create_model
from tests.predict.making_systems import system

from broadgauge.catalog.loading import KINDS, shipped_data
from broadgauge.catalog.reading import read_entries
from broadgauge.predict.system import file as system_file
from broadgauge.predict.system.file import dump_system, parse_system
from broadgauge.specs.base import NAME_PATTERN
from broadgauge.specs.errors import InputError
from broadgauge.specs.text import yaml_source
from broadgauge.specs.text.document import Document
from broadgauge.specs.text.plain_messages import shown, value_problem
from broadgauge.specs.text.yaml_source import parse_yaml

PYDANTICS = re.compile(
    r"input should|valid (number|integer|string|list|tuple|dict|boolean)|unable to parse|"
    r"greater than|less than|should match pattern|literal\[|function-|type=|instance of|"
    r"at least \d+ items?|field required|extra inputs|pydantic",
    re.IGNORECASE,
)
WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    0.5,
    1e12,
    "",
    "fast",
    "1 GB",
    [],
    [1],
    ["a"],
    {},
    {"a": 1},
)


def places_in(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every part of plain data."""
    items: list[tuple[Any, Any]] = []
    if isinstance(data, dict):
        items = list(data.items())
    elif isinstance(data, list):
        items = list(enumerate(data[:2]))
    return [path, *(place for key, part in items for place in places_in(part, (*path, key)))]


def put(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value there."""
    if not path:
        return value
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = put(copy[path[0]], path[1:], value)
    return copy


def parsed(data: Any) -> Callable[[str, str], Document]:
    """A parser of YAML whose text has been read already: it takes most of the time."""
    return lambda _, filename: Document(filename=filename, data=data)


def check(error: InputError) -> None:
    for line in str(error).splitlines():
        assert not PYDANTICS.search(line), line
    assert "hint: " in str(error)
    assert str(error).startswith("mine.yaml")


@pytest.mark.parametrize("kind", KINDS)
def test_no_entry_of_a_catalog_is_refused_in_pydantics_words(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = max(shipped_data(kind), key=lambda each: len(str(each)))
    tried = [(place, wrong) for place in places_in(data)[1:] for wrong in WRONG]
    num_refused = 0
    for place, wrong in random.Random(5).sample(tried, 60):
        monkeypatch.setattr(yaml_source, "parse_yaml", parsed({kind: [put(data, place, wrong)]}))
        try:
            read_entries("", "mine.yaml")
        except InputError as error:
            check(error)
            num_refused += 1
    assert num_refused > 20


def test_no_system_file_is_refused_in_pydantics_words(monkeypatch: pytest.MonkeyPatch) -> None:
    data = parse_yaml(dump_system(system(has_steps=True)), "mine.yaml").data
    dice = random.Random(3)
    num_refused = 0
    for place in dice.sample(places_in(data)[1:], 60):
        changed = parsed(put(data, place, dice.choice(WRONG)))
        monkeypatch.setattr(system_file, "parse_yaml", changed)
        try:
            parse_system("", "mine.yaml")
        except InputError as error:
            check(error)
            num_refused += 1
    assert num_refused > 10


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        ({"type": "float_parsing", "input": "x"}, ("`k` takes a number, not `x`", None)),
        ({"type": "bool_type", "input": 3}, ("`k` takes `true` or `false`, not `3`", None)),
        (
            {"type": "less_than_equal", "input": 9, "ctx": {"le": 8}},
            ("`k` takes a number of 8 or less, not `9`", None),
        ),
        (
            {"type": "too_long", "input": [1, 2], "ctx": {"max_length": 1}},
            ("`k` takes a list of 1 or fewer, not a list of 2", None),
        ),
        (
            {"type": "literal_error", "input": "rocket", "ctx": {"expected": "'roce' or 'tcp'"}},
            ("`k` can't be `rocket`", "did you mean `roce`?"),
        ),
        ({"type": "never_heard_of", "input": {"a": 1}}, ("`k` can't be a mapping", None)),
    ],
)
def test_what_is_wanted_is_said(detail: Any, said: tuple[str, str | None]) -> None:
    assert value_problem("k", {"loc": ("k",), "msg": "Input should be", **detail}) == said


def test_a_name_is_explained() -> None:
    model = create_model("M", name=(str, Field(pattern=NAME_PATTERN)))
    with pytest.raises(ValidationError) as refused:
        model(name="A B")
    message, _ = value_problem("name", refused.value.errors()[0])
    assert "lower-case letters" in message
    assert message.endswith("not `A B`")


def test_a_long_value_is_cut() -> None:
    assert len(shown("x" * 500)) < 70
