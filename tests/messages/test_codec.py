"""Proves messages/codec.py: what is encoded comes back, what is wrong is told with its place."""

import json
import types
import typing
from dataclasses import dataclass, is_dataclass
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broadgauge.messages import agent, counters, rank
from broadgauge.messages.codec import DecodeError, Decoder, decode, encode
from broadgauge.messages.vocabulary import StepMode

OBJECTS = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)

FORMS = [agent.Order, agent.Event, rank.Command, rank.Block, rank.Hello, rank.Failed, rank.Artifact]


def values_of(form: Any) -> st.SearchStrategy[Any]:
    """Any value of this type."""
    origin, arguments = typing.get_origin(form), typing.get_args(form)
    if origin is not None:
        return values_of_composed(origin, arguments, form)
    if is_dataclass(form):
        hints = typing.get_type_hints(form)
        return st.builds(form, **{name: values_of(hint) for name, hint in hints.items()})
    if form is Any:
        return OBJECTS | st.none() | st.text(max_size=5)
    return FLOATS if form is float else st.from_type(form)


def values_of_composed(
    origin: Any, arguments: tuple[Any, ...], form: Any
) -> st.SearchStrategy[Any]:
    if origin is dict:
        return st.dictionaries(*map(values_of, arguments), max_size=3)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, arguments))
    if origin is types.UnionType or origin is typing.Union:
        return st.one_of(*map(values_of, arguments))
    return st.from_type(form)


@pytest.mark.parametrize("form", FORMS, ids=str)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_what_is_encoded_comes_back(form: Any, data: st.DataObject) -> None:
    value = data.draw(values_of(form))
    assert Decoder[Any](form)(json.loads(json.dumps(encode(value)))) == value


def test_unknown_keys_are_ignored_and_defaults_stand_in() -> None:
    value = {"op": "all_reduce", "size_bytes": 8, "of a later version": [1]}
    assert decode(rank.StepCollective, value) == rank.StepCollective(op="all_reduce", size_bytes=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    sizes: tuple[int, ...]
    pair: tuple[int, str] = (0, "")
    mode: StepMode = StepMode.TIMED


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    inner: Inner
    by_name: dict[str, tuple[float, ...]]
    word: Literal["a", 1] = "a"
    maybe: Inner | None = None
    text_or_number: str | int = ""


RIGHT: dict[str, Any] = {"inner": {"sizes": [1]}, "by_name": {"x": [1, 2.5]}}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (RIGHT | {"inner": {"sizes": [1, "2"]}}, "inner.sizes[1]: expected an integer, got '2'"),
        (RIGHT | {"inner": {"sizes": [True]}}, "inner.sizes[0]: expected an integer, got True"),
        (RIGHT | {"inner": {}}, "inner: `sizes` is missing (Inner)"),
        (RIGHT | {"inner": 3}, "inner: expected an object (Inner), got 3"),
        (
            RIGHT | {"inner": {"sizes": [], "pair": [1]}},
            "inner.pair: expected a list of 2, got [1]",
        ),
        (
            RIGHT | {"inner": {"sizes": [], "mode": "idle"}},
            "inner.mode: expected 'timed' or 'communication_off' or 'traced', got 'idle'",
        ),
        (
            RIGHT | {"by_name": {"x": [1, float("nan")]}},
            "by_name.x[1]: expected a finite number, got nan",
        ),
        (RIGHT | {"by_name": {"x": [10**400]}}, "by_name.x[0]: expected a finite number, got 1000"),
        (RIGHT | {"word": True}, "word: expected 'a' or 1, got True"),
        (RIGHT | {"maybe": {"sizes": 0}}, "maybe.sizes: expected a list, got 0"),
        (RIGHT | {"maybe": 7}, "maybe: expected Inner or NoneType, got 7"),
        (RIGHT | {"text_or_number": 1.5}, "text_or_number: expected str or int, got 1.5"),
        ([], "expected an object (Outer), got []"),
    ],
)
def test_a_wrong_value_is_told_with_its_place(wrong: Any, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(Outer, wrong)
    assert str(caught.value).startswith(message)


def test_an_unknown_tag_is_told_with_the_known_ones() -> None:
    with pytest.raises(DecodeError, match="type: expected 'trial' or 'release' or 'end', got 'x'"):
        rank.COMMAND({"type": "x"})
    with pytest.raises(DecodeError, match=r"kind: expected 'collective' or .*, got None"):
        rank.BLOCK({"type": "block"})


def test_what_no_message_can_hold_is_refused_when_it_is_written() -> None:
    with pytest.raises(TypeError, match="a set has no place in a message"):
        encode({1})


def test_a_type_that_no_reader_could_tell_is_refused_when_it_is_made() -> None:
    with pytest.raises(TypeError, match="nothing tells these apart"):
        Decoder[Any](Inner | counters.NicCounters)
    with pytest.raises(TypeError, match="no message can hold"):
        Decoder[Any](set[int])


@settings(max_examples=50, deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | OBJECTS))
def test_whatever_comes_is_decoded_or_refused(value: Any) -> None:
    for decoder in (agent.ORDER, agent.EVENT, rank.COMMAND):
        try:
            decoded = typing.cast("Decoder[Any]", decoder)(value)
        except DecodeError:
            continue
        assert decoder(encode(decoded)) == decoded
