"""Is each record one sample, tokenised once, counted where it is none, and written whole?"""

import errno
import json
import os
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tokenizing.made_tokenizers import say, word_tokenizer
from tests.tokenizing.reading import samples_in

from broadgauge.messages.prepared_set import (
    PreparedSetError,
    check_content,
    read_prepared_set,
)
from broadgauge.specs.errors import InputError
from broadgauge.tokenizing import documents, preparing, samples, writing
from broadgauge.tokenizing.lengths import counts_of, histogram, percentile
from broadgauge.tokenizing.preparing import prepare
from broadgauge.tokenizing.request import PrepareRequest
from broadgauge.tokenizing.tokenizer import ByteTokenizer

TEXTS = ["first", "", "a", "zweiter Satz: ä", "third\nwith a second line"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BROADGAUGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache/data"


def lines(path: Path, *records: Any) -> PrepareRequest:
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return PrepareRequest(source=str(path))


def changed(request: PrepareRequest, **changes: Any) -> PrepareRequest:
    from dataclasses import replace

    return replace(request, **changes)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1))
def test_json_lines_are_samples_in_order(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    request = lines(folder / "data.jsonl", *({"text": text} for text in (*texts, "the end")))
    made = prepare(changed(request, out=folder / "set"))
    kept = [text.encode() for text in (*texts, "the end") if len(text.encode()) > 1]
    assert [bytes(sample) for sample in samples_in(made.folder)] == kept
    described = made.described
    assert described.num_records == len(texts) + 1
    assert described.num_samples + sum(described.left_out.values()) == described.num_records
    check_content(made.folder, described)


def test_what_becomes_no_sample_is_counted(tmp_path: Path) -> None:
    request = lines(tmp_path / "data.jsonl", *({"text": text} for text in TEXTS))
    described = prepare(changed(request, max_length=16)).described
    assert described.left_out == {"empty": 1, "one token": 1, "too long": 1}
    assert (described.num_samples, described.num_records, described.num_cut) == (2, 5, 0)
    made = prepare(changed(request, max_length=16, over_length="cut"))
    assert made.described.num_cut == 1
    assert bytes(samples_in(made.folder)[-1]) == b"third\nwith a sec"
    with pytest.raises(InputError, match=r"jsonl:5: 24 tokens, and --max-length is 16"):
        prepare(changed(request, max_length=16, over_length="refuse"))


@pytest.mark.parametrize("size", [2, 7, 1000])
def test_a_text_is_cut_into_blocks(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is read in pieces that end in the middle of a block, and of a character."""
    text = "".join(f"line {number}: äöü€\n" for number in range(40))
    (tmp_path / "data.txt").write_text(text)
    monkeypatch.setattr(documents, "PIECE_BYTES", 13)
    monkeypatch.setattr("broadgauge.tokenizing.samples.PIECE_BYTES", 13)
    request = PrepareRequest(source=str(tmp_path / "data.txt"), max_length=size)
    samples = samples_in(prepare(request).folder)
    whole = b"".join(map(bytes, samples))
    assert whole == text.encode()[: len(whole)]
    assert len(text.encode()) - len(whole) <= 1  # a last token alone predicts nothing
    assert {len(sample) for sample in samples[:-1]} <= {size}
    assert "".join(documents.pieces_of(tmp_path / "data.txt")) == text


def test_a_text_that_is_not_utf8_is_only_for_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "PIECE_BYTES", 4)
    (tmp_path / "data.txt").write_bytes("abcäöü".encode() + b"\xff!")
    request = PrepareRequest(source=str(tmp_path / "data.txt"))
    assert prepare(request).described.num_tokens == 11
    tokenizer = str(word_tokenizer(tmp_path / "words"))
    with pytest.raises(InputError, match="is not UTF-8: invalid start byte, byte 10"):
        prepare(changed(request, tokenizer=tokenizer))


def test_a_conversation_is_written_by_its_template(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "a b"}, {"role": "bot", "content": "c"}]
    request = lines(tmp_path / "data.jsonl", {"talk": talk}, {"talk": []})
    request = changed(request, field="talk", is_conversation=True)
    made = prepare(request)
    (sample,) = samples_in(made.folder)
    assert bytes(sample).decode() == (
        "<|im_start|>user\na b<|im_end|>\n<|im_start|>bot\nc<|im_end|>\n"
    )
    assert made.described.left_out == {"empty": 1}
    folder = word_tokenizer(tmp_path / "words", adds_start=True)
    say(folder, chat_template="{% for m in messages %}{{ m.content }} {% endfor %}")
    own = prepare(changed(request, tokenizer=str(folder)))
    assert samples_in(own.folder) == [[3, 4, 5]]  # no <s>: a template has written all there is
    assert own.described.template == "the tokenizer's (tokenizer_config.json)"


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"talk": "a"}, "data.jsonl:2: `talk` is no list of messages, but str 'a'"),
        ({"tlak": []}, "data.jsonl:2: no key `talk`; did you mean `tlak`?"),
        ({"talk": [{"role": "u", "content": "\ud800"}]}, "can't be UTF-8"),
    ],
)
def test_a_wrong_record_is_named_and_nothing_is_left(
    tmp_path: Path, cache: Path, record: Any, words: str
) -> None:
    talk = {"talk": [{"role": "u", "content": "a"}]}
    request = lines(tmp_path / "data.jsonl", talk, record)
    with pytest.raises(InputError, match=re.escape(words)):
        prepare(changed(request, field="talk", is_conversation=True))
    assert list(cache.iterdir()) == []


def test_a_set_is_found_again_by_content_and_settings(tmp_path: Path, cache: Path) -> None:
    request = lines(tmp_path / "data.jsonl", {"text": "some text", "other": "more of it"})
    first = prepare(request)
    assert first.folder.parent == cache
    assert not first.was_there
    moved = tmp_path / "moved.jsonl"
    moved.write_bytes((tmp_path / "data.jsonl").read_bytes())
    again = prepare(changed(request, source=str(moved)))
    assert again.was_there
    assert again.described == first.described
    tokenizer = str(word_tokenizer(tmp_path / "words"))
    others = [
        changed(request, field="other"),
        changed(request, max_length=5, over_length="cut"),
        changed(request, max_length=5, tokenizer=tokenizer),
        changed(request, kind="text"),
        lines(moved, {"text": "some text!"}),
    ]
    keys = {prepare(each).described.key for each in others}
    assert len(keys | {first.described.key}) == 6


def test_tokenising_is_not_done_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = lines(tmp_path / "data.jsonl", {"text": "some text"})
    prepare(request)
    monkeypatch.setattr(ByteTokenizer, "encode_as_they_are", None)
    assert prepare(request).was_there


def test_an_interrupted_preparation_leaves_no_set(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ends it, between any two samples; the next one does all of it."""
    request = lines(tmp_path / "data.jsonl", *({"text": f"text {n}"} for n in range(5)))
    whole = preparing.samples_of

    def interrupted(*arguments: Any) -> Iterator[Any]:
        for number, sample in enumerate(whole(*arguments)):
            if number == 3:
                raise KeyboardInterrupt
            yield sample

    monkeypatch.setattr(preparing, "samples_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare(request)
    assert list(cache.iterdir()) == []
    monkeypatch.undo()
    monkeypatch.setenv("BROADGAUGE_CACHE", str(cache.parent))
    assert prepare(request).described.num_samples == 5


def test_what_a_killed_one_left_is_never_taken_and_goes_a_day_later(
    tmp_path: Path, cache: Path
) -> None:
    request = lines(tmp_path / "data.jsonl", {"text": "some text"})
    final = prepare(request).folder
    fresh, old = (cache / f".{final.name}.part-{name}" for name in ("fresh", "old"))
    final.rename(fresh)
    (fresh / "set.json").unlink()
    old.mkdir()
    os.utime(old, (0, 0))
    (working := cache / f".{final.name}.part-working").mkdir()
    (working / "tokens.bin").write_bytes(b"")  # written a moment ago, into a folder of last year
    os.utime(working, (0, 0))
    assert not prepare(request).was_there
    assert {each.name for each in cache.iterdir()} == {final.name, fresh.name, working.name}


def test_two_at_once_leave_one_set(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = lines(tmp_path / "data.jsonl", {"text": "some text"})
    whole = preparing.samples_of

    def with_another(*arguments: Any) -> Iterator[Any]:
        monkeypatch.setattr(preparing, "samples_of", whole)
        prepare(request)
        yield from whole(*arguments)

    monkeypatch.setattr(preparing, "samples_of", with_another)
    made = prepare(request)
    assert [each.name for each in cache.iterdir()] == [made.folder.name]
    assert samples_in(made.folder) == [list(b"some text")]


def test_what_is_in_the_way_stays(tmp_path: Path) -> None:
    request = lines(tmp_path / "data.jsonl", {"text": "some text"})
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="is there, and is no prepared set"):
        prepare(changed(request, out=mine))
    first = prepare(changed(request, out=tmp_path / "set"))
    with pytest.raises(InputError, match=r"holds another prepared set .*data\.jsonl"):
        prepare(changed(request, out=tmp_path / "set", kind="text"))
    assert samples_in(first.folder) == [list(b"some text")]


def test_a_source_that_changes_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = lines(tmp_path / "data.jsonl", {"text": "some text"})
    whole = preparing.samples_of

    def with_a_writer(*arguments: Any) -> Iterator[Any]:
        yield from whole(*arguments)
        lines(tmp_path / "data.jsonl", {"text": "another text"})

    monkeypatch.setattr(preparing, "samples_of", with_a_writer)
    with pytest.raises(InputError, match="was changed while it was read"):
        prepare(request)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("data.josnl", "no file `{}/data.josnl`\n  hint: did you mean `data.jsonl`?"),
        ("data2.jsonl", "no file `{}/data2.jsonl`\n  hint: did you mean `data.jsonl`?"),
        ("empty.jsonl", "gives no sample: it is empty"),
        ("short.jsonl", "gives no sample: 1 empty, 2 one token"),
        ("fifo", "is a FIFO, no file"),
    ],
)
def test_a_source_that_gives_nothing_is_said(tmp_path: Path, name: str, words: str) -> None:
    lines(tmp_path / "data.jsonl", {"text": "some text"})
    lines(tmp_path / "empty.jsonl")
    lines(tmp_path / "short.jsonl", {"text": "a"}, {"text": ""}, {"text": "b"})
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InputError) as refused:
        prepare(PrepareRequest(source=str(tmp_path / name)))
    assert words.format(tmp_path) in str(refused.value)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("squad", True), ("openai/gsm8k", True), ("a/b.c", True), ("data.txt", False)]
    + [(name, False) for name in ("./data", "/data", "a/b/c", "~/data")],
)
def test_a_name_that_is_no_file_may_be_a_data_set_s(name: str, is_one: bool) -> None:
    if is_one:
        assert documents.kind_of_source(PrepareRequest(source=name)) == "dataset"
    else:
        with pytest.raises(InputError, match="no file"):
            documents.kind_of_source(PrepareRequest(source=name))


def test_memory_does_not_grow_with_the_source(tmp_path: Path) -> None:
    """Eight times the records: less than half more at the peak."""

    def peak_bytes(num_records: int) -> int:
        records = ({"text": f"{number} " * 200} for number in range(num_records))
        request = lines(tmp_path / f"{num_records}.jsonl", *records)
        tracemalloc.start()
        prepare(request)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak_bytes(10)  # imports
    assert peak_bytes(4096) < 1.5 * peak_bytes(512)


@given(st.dictionaries(st.integers(2, 90), st.integers(1, 9), min_size=1))
def test_percentiles_and_bins_are_of_all_samples(counts: dict[int, int]) -> None:
    lengths = sorted(length for length, times in counts.items() for _ in range(times))
    assert percentile(counts, 0.5) == lengths[(len(lengths) - 1) // 2]
    above = sum(length > percentile(counts, 0.95) for length in lengths)
    assert above <= 0.05 * len(lengths)
    bins = histogram(counts)
    assert len(bins) <= 12
    for each in bins:
        inside = [length for length in lengths if each.shortest <= length <= each.longest]
        assert each.num_samples == len(inside)
    assert sum(each.num_samples for each in bins) == len(lengths)


def test_lengths_are_read_back_from_the_folder(tmp_path: Path) -> None:
    request = lines(tmp_path / "data.jsonl", *({"text": "a" * n} for n in (3, 5, 3, 9)))
    made = prepare(request)
    assert counts_of(made.folder, 20) == {3: 2, 5: 1, 9: 1}
    with pytest.raises(PreparedSetError, match="does not rise from 0 to the 21 tokens"):
        counts_of(made.folder, 21)


def test_two_sets_at_once_for_one_folder_are_not_taken_for_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = changed(lines(tmp_path / "mine.jsonl", {"text": "mine"}), out=tmp_path / "set")
    other = changed(lines(tmp_path / "other.jsonl", {"text": "other"}), out=tmp_path / "set")
    whole = preparing.samples_of

    def with_another(*arguments: Any) -> Iterator[Any]:
        monkeypatch.setattr(preparing, "samples_of", whole)
        prepare(other)
        yield from whole(*arguments)

    monkeypatch.setattr(preparing, "samples_of", with_another)
    with pytest.raises(InputError, match=r"holds another prepared set .*other\.jsonl"):
        prepare(mine)
    assert samples_in(tmp_path / "set") == [list(b"other")]


def test_a_sample_longer_than_the_text_costs_no_more_than_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Joining what is held with each piece would copy half of all pieces' squares."""
    (tmp_path / "a.txt").write_bytes(bytes(range(256)) * 40)
    monkeypatch.setattr(samples, "PIECE_BYTES", 16)
    copied_bytes = 0
    join = np.concatenate

    def counting(parts: Any) -> Any:
        nonlocal copied_bytes
        copied_bytes += sum(map(len, parts))
        return join(parts)

    monkeypatch.setattr(samples.np, "concatenate", counting)
    made = prepare(PrepareRequest(source=str(tmp_path / "a.txt"), max_length=10**15))
    assert made.described.lengths.longest == 256 * 40
    assert copied_bytes <= 2 * 256 * 40


def test_a_file_whose_name_is_no_utf8_is_prepared(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")
    Path(path).write_text("some text")
    made = prepare(PrepareRequest(source=path))
    assert r"\udcff.txt" in read_prepared_set(made.folder).source


@pytest.mark.parametrize("name", ["x" * 300, "nofolder.txt/set"])
def test_a_place_that_can_not_be_is_said(tmp_path: Path, name: str) -> None:
    request = lines(tmp_path / "data.jsonl", {"text": "some text"})
    (tmp_path / "nofolder.txt").write_text("")
    with pytest.raises(InputError, match=r"set.*`.* can't be (read|written)") as raised:
        prepare(changed(request, out=tmp_path / name))
    assert "--out FOLDER" in str(raised.value)


def test_a_disk_without_room_for_a_file_is_said_of_the_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    request = lines(tmp_path / "data.jsonl", {"text": "some text"})
    monkeypatch.setattr(writing, "_Output", full)
    with pytest.raises(InputError, match=r"the prepared set .* can't be written: No space left"):
        prepare(request)
