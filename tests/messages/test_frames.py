"""Proves messages/frames.py: frames survive what happens to lines, and damage is never data."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broadgauge.messages.frames import (
    MAX_FRAME_BYTES,
    MAX_MESSAGE_BYTES,
    FrameReader,
    FrameWriter,
    LostFrames,
    plain_line,
    unique_sender,
)

MESSAGES = st.dictionaries(
    st.text(max_size=8), st.one_of(st.integers(), st.text(max_size=30), st.booleans()), max_size=5
)
PLAIN = st.text(st.characters(blacklist_characters="\n@", codec="utf-8"), max_size=30)


def read(stream: bytes, cut: int = 65_536) -> tuple[list[Any], list[bytes], FrameReader]:
    reader = FrameReader()
    messages: list[Any] = []
    others: list[bytes] = []
    for start in range(0, len(stream), cut):
        new_messages, new_others = reader.feed(stream[start : start + cut])
        messages += new_messages
        others += new_others
    return messages, others, reader


@settings(deadline=None)
@given(st.lists(st.one_of(MESSAGES, PLAIN), max_size=8), st.integers(1, 9))
def test_any_cut_and_any_company_gives_the_same_messages(
    items: list[dict[str, object] | str], cut: int
) -> None:
    writer = FrameWriter("a")
    stream = b"".join(
        writer.write(item) if isinstance(item, dict) else item.encode() + b"\n" for item in items
    )
    messages, others, _ = read(stream, cut)
    assert [received.message for received in messages] == [
        item for item in items if isinstance(item, dict)
    ]
    assert others == [item.encode() for item in items if isinstance(item, str)]


@settings(deadline=None)
@given(MESSAGES, st.data())
def test_a_damaged_frame_is_no_message(message: dict[str, object], data: st.DataObject) -> None:
    line = FrameWriter("a").write(message)
    place = data.draw(st.integers(0, len(line) - 2))
    other = data.draw(st.integers(1, 255))
    damaged = line[:place] + bytes([line[place] ^ other]) + line[place + 1 :]
    messages, _, reader = read(damaged)
    assert [received.message for received in messages] in ([], [message])
    assert not messages or (messages[0].sender, messages[0].number) == ("a", 0)
    assert reader.lost() in ((), (LostFrames(sender="a", first=1, last=None),))


@settings(deadline=None)
@given(st.lists(st.one_of(st.text(), st.just("@bg2"), st.just("@@bg2bg2\n")), max_size=5))
def test_a_plain_line_is_one_line_that_can_be_written_and_holds_no_frame(parts: list[str]) -> None:
    frame = FrameWriter("a", is_shared=True).write({"x": 1}).decode()
    line = plain_line("".join(parts) + frame + "".join(parts)).encode()
    assert b"@bg2" not in line
    assert line.decode().replace("\t", "").isprintable()
    assert read(line + b"\n")[0] == []


def test_a_plain_line_of_words_is_as_it_was() -> None:
    assert plain_line("net1\t10.0.0.1, é and 漢") == "net1\t10.0.0.1, é and 漢"
    assert plain_line("a\n\x1b[2J\ud800") == "a\\n\\x1b[2J\\ud800"


def test_no_frame_is_longer_than_eight_kib_and_long_messages_come_whole() -> None:
    writer, long = FrameWriter("s" * 64, is_shared=True), {"text": "é@bg2 " * 20_000}
    written = writer.write({"a": 1}) + writer.write(long) + writer.write({"b": 2})
    lines = [line + b"\n" for line in written.split(b"\n")]
    assert len(lines) > 30
    assert max(map(len, lines)) <= MAX_FRAME_BYTES
    messages, _, reader = read(written + writer.close())
    assert [received.message for received in messages] == [{"a": 1}, long, {"b": 2}]
    assert reader.lost() == ()


def test_a_message_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than"):
        FrameWriter("a").write({"x": "y" * MAX_MESSAGE_BYTES})


def test_numbers_that_are_none_are_refused_on_both_sides() -> None:
    with pytest.raises(ValueError, match="JSON"):
        FrameWriter("a").write({"x": float("nan")})


def test_text_around_a_frame_is_stepped_over_and_told() -> None:
    line = b"2026-11-22T00:00:00Z stdout F " + FrameWriter("a").write({"a": 1})[:-1] + b" more\n"
    messages, others, _ = read(line)
    assert [received.message for received in messages] == [{"a": 1}]
    assert others == [b"2026-11-22T00:00:00Z stdout F ", b" more"]


def test_a_frame_that_a_message_quotes_is_not_read() -> None:
    inner = FrameWriter("inner").write({})
    outer = FrameWriter("outer").write({"log": inner.decode()})
    messages, _, _ = read(outer[20:] + outer[:-5] + b"\n" + outer)
    assert [received.sender for received in messages] == ["outer"]


def test_a_frame_at_the_end_needs_no_line_feed() -> None:
    reader = FrameReader()
    assert reader.feed(FrameWriter("a").write({"a": 1})[:-1]) == ([], [])
    messages, others = reader.finish()
    assert [received.message for received in messages] == [{"a": 1}]
    assert others == []
    assert reader.finish() == ([], [])


def test_a_line_without_end_takes_bounded_memory() -> None:
    reader = FrameReader()
    others = [part for _ in range(100) for part in reader.feed(b"x" * 10_000)[1]]
    assert sum(map(len, others)) > 900_000


def test_what_a_hostile_sender_counts_is_no_frame() -> None:
    """Right checksums over numbers that no writer would give."""
    import zlib

    lines = []
    for counted in (b"a 0 1 2", b"a 9 3 2", b"a 9 0 9999", b"a 3 1 0"):
        crc = zlib.crc32(b"{}", zlib.crc32(counted))
        lines.append(b"@bg2 %b 2 %08x {}\n" % (counted, crc))
    messages, others, reader = read(b"".join(lines))
    assert (messages, len(others), reader.lost()) == ([], 4, ())


def test_a_message_too_deep_to_be_written_on_is_no_message() -> None:
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"a": [deep]}
    writer = FrameWriter("a")
    messages, _, reader = read(writer.write(deep) + writer.write({"b": 1}) + writer.close())
    assert [received.message for received in messages] == [{"b": 1}]
    assert reader.lost() == ()


def test_a_log_with_many_gaps_is_read_again_without_walking_them() -> None:
    looked_at: list[Any] = []

    class Counting(list[tuple[int, int]]):
        def __iter__(self) -> Iterator[tuple[int, int]]:
            for gap in super().__iter__():
                looked_at.append(gap)
                yield gap

        def __getitem__(self, place: Any) -> Any:
            looked_at.append(place)
            return super().__getitem__(place)

    writer, reader = FrameWriter("a"), FrameReader()
    lines = [writer.write({"n": number}) for number in range(2000)]
    reader.feed(lines[0])
    reader._senders["a"].gaps = Counting()
    reader.feed(b"".join(lines[::2]))
    messages, _ = reader.feed(b"".join(lines))
    assert len(messages) == 1000
    assert len(looked_at) < 2000 * 2 * 16


def test_each_life_of_a_sender_has_another_name() -> None:
    assert unique_sender("rank0") != unique_sender("rank0")


def sent_by(sender: str, rng: random.Random) -> tuple[list[bytes], dict[int, Any]]:
    """Its lines, one a frame, and its messages by the number of their first frame."""
    writer, lines, messages = FrameWriter(sender, is_shared=True), [], {}
    for step in range(30):
        size = rng.choice((10, 200, 9000, 30_000))
        message = {"sender": sender, "step": step, "text": rng.choice("ab@\n") * size}
        messages[len(lines)] = message
        lines += [line + b"\n" for line in writer.write(message).split(b"\n") if line]
    return [*lines, writer.close()[1:]], messages


def mistreated(lines: list[bytes], rng: random.Random) -> tuple[list[bytes], set[int]]:
    """The lines as a log might give them back, and the places of those that can't have survived."""
    result, broken = [], set()
    for place, line in enumerate(lines):
        fate = rng.random()
        if fate < 0.04:
            broken.add(place)
        elif fate < 0.08:
            broken.add(place)
            cut = rng.randrange(1, len(line) - 8)
            result.append(line[:cut] if rng.random() < 0.5 else line[cut:])
        elif fate < 0.16:
            result += [line] * rng.choice((2, 3))
        else:
            result.append(line)
    return result, broken


@pytest.mark.parametrize("seed", range(20))
def test_lost_cut_doubled_interleaved_lines_give_no_wrong_message(seed: int) -> None:
    """Each frame that did not survive is named, each message whose frames all did is there."""
    rng = random.Random(seed)
    streams: dict[str, list[bytes]] = {}
    sent, broken, num_frames = {}, {}, {}
    for name in ("rank0", "rank1", "agent"):
        lines, sent[name] = sent_by(name, rng)
        num_frames[name] = len(lines)
        streams[name], broken[name] = mistreated(lines, rng)
    log = b"its own output\n"
    while any(streams.values()):
        name = rng.choice([name for name, lines in streams.items() if lines])
        log += streams[name].pop(0)
        if rng.random() < 0.2:
            log += rng.choice((b"progress 10 %\r", b"Traceback\n", b"@bg2 ", b"\xff\xfe\n"))
    if rng.random() < 0.5:  # read again from the start, as after a rotation
        log = log[: rng.randrange(len(log))] + log
    messages, _, reader = read(log, rng.choice((1000, 65_536)))
    for received in (*messages, *reader.finish()[0]):
        assert sent[received.sender].pop(received.number) == received.message
    lost: dict[str, set[int]] = {name: set() for name in streams}
    for gap in reader.lost():
        last = num_frames[gap.sender] - 1 if gap.last is None else gap.last
        lost[gap.sender] |= set(range(gap.first, last + 1))
    assert lost == broken
    for name, missing in sent.items():
        parts = {n: len(FrameWriter(name).write(m).splitlines()) for n, m in missing.items()}
        assert all(broken[name] & set(range(n, n + parts[n])) for n in missing)
