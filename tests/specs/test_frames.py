"""Proves specs/frames.py: frames survive cuts and company, and damage is never read as data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.specs.frames import FrameReader, decode_frame, encode_frame

MESSAGES = st.dictionaries(
    st.text(max_size=8), st.one_of(st.integers(), st.text(max_size=30), st.booleans()), max_size=5
)
PLAIN = st.text(st.characters(blacklist_characters="\n@", codec="utf-8"), max_size=30)


@given(st.lists(st.one_of(MESSAGES, PLAIN), max_size=8), st.integers(1, 9))
def test_any_cut_and_any_company_gives_the_same_messages(
    items: list[dict[str, object] | str], cut: int
) -> None:
    stream = b"".join(
        encode_frame(item) if isinstance(item, dict) else item.encode() + b"\n" for item in items
    )
    reader = FrameReader()
    messages: list[dict[str, object]] = []
    others: list[bytes] = []
    for start in range(0, len(stream), cut):
        new_messages, new_others = reader.feed(stream[start : start + cut])
        messages += new_messages
        others += new_others
    assert messages == [item for item in items if isinstance(item, dict)]
    assert others == [item.encode() for item in items if isinstance(item, str)]


@given(MESSAGES, st.data())
def test_a_damaged_frame_is_no_message(message: dict[str, object], data: st.DataObject) -> None:
    line = encode_frame(message)[:-1]
    place = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(st.integers(1, 255))
    damaged = line[:place] + bytes([line[place] ^ other]) + line[place + 1 :]
    assert decode_frame(damaged) in (None, message)


def test_text_before_a_frame_is_stepped_over() -> None:
    assert decode_frame(b"step 3 " + encode_frame({"a": 1})[:-1]) == {"a": 1}


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode_frame({"x": float("nan")})
