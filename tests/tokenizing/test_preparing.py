"""Is each record one sample, tokenised once, and counted where it is none?"""

import os
import re
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costly import costly
from tests.tokenizing.made_records import lines
from tests.tokenizing.made_tokenizers import say, word_tokenizer
from tests.tokenizing.reading import samples_in

from broadgauge.messages.prepared_set import check_content, read_prepared_set
from broadgauge.specs.errors import InputError
from broadgauge.tokenizing import documents, preparing, samples
from broadgauge.tokenizing.preparing import prepare
from broadgauge.tokenizing.request import PrepareRequest
from broadgauge.tokenizing.tokenizer import ByteTokenizer

TEXTS = ["first", "", "a", "zweiter Satz: ä", "third\nwith a second line"]


@costly(60)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1))
def test_json_lines_are_samples_in_order(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    request = lines(folder / "data.jsonl", *({"text": text} for text in (*texts, "the end")))
    made = prepare(replace(request, out=folder / "set"))
    kept = [text.encode() for text in (*texts, "the end") if len(text.encode()) > 1]
    assert [bytes(sample) for sample in samples_in(made.folder)] == kept
    described = made.described
    assert described.num_records == len(texts) + 1
    assert described.num_samples + sum(described.left_out.values()) == described.num_records
    check_content(made.folder, described)


def test_what_becomes_no_sample_is_counted(tmp_path: Path) -> None:
    request = lines(tmp_path / "data.jsonl", *({"text": text} for text in TEXTS))
    described = prepare(replace(request, max_length=16)).described
    assert described.left_out == {"empty": 1, "one token": 1, "too long": 1}
    assert (described.num_samples, described.num_records, described.num_cut) == (2, 5, 0)
    made = prepare(replace(request, max_length=16, over_length="cut"))
    assert made.described.num_cut == 1
    assert bytes(samples_in(made.folder)[-1]) == b"third\nwith a sec"
    with pytest.raises(InputError, match=r"jsonl:5: 24 tokens, and --max-length is 16"):
        prepare(replace(request, max_length=16, over_length="refuse"))


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
        prepare(replace(request, tokenizer=tokenizer))


def test_a_conversation_is_written_by_its_template(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "a b"}, {"role": "bot", "content": "c"}]
    request = lines(tmp_path / "data.jsonl", {"talk": talk}, {"talk": []})
    request = replace(request, field="talk", is_conversation=True)
    made = prepare(request)
    (sample,) = samples_in(made.folder)
    assert bytes(sample).decode() == (
        "<|im_start|>user\na b<|im_end|>\n<|im_start|>bot\nc<|im_end|>\n"
    )
    assert made.described.left_out == {"empty": 1}
    folder = word_tokenizer(tmp_path / "words", adds_start=True)
    say(folder, chat_template="{% for m in messages %}{{ m.content }} {% endfor %}")
    own = prepare(replace(request, tokenizer=str(folder)))
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
        prepare(replace(request, field="talk", is_conversation=True))
    assert list(cache.iterdir()) == []


def test_a_set_is_found_again_by_content_and_settings(tmp_path: Path, cache: Path) -> None:
    request = lines(tmp_path / "data.jsonl", {"text": "some text", "other": "more of it"})
    first = prepare(request)
    assert first.folder.parent == cache
    assert not first.was_there
    moved = tmp_path / "moved.jsonl"
    moved.write_bytes((tmp_path / "data.jsonl").read_bytes())
    again = prepare(replace(request, source=str(moved)))
    assert again.was_there
    assert again.described == first.described
    tokenizer = str(word_tokenizer(tmp_path / "words"))
    others = [
        replace(request, field="other"),
        replace(request, max_length=5, over_length="cut"),
        replace(request, max_length=5, tokenizer=tokenizer),
        replace(request, kind="text"),
        lines(moved, {"text": "some text!"}),
    ]
    keys = {prepare(each).described.key for each in others}
    assert len(keys | {first.described.key}) == 6


def test_tokenising_is_not_done_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = lines(tmp_path / "data.jsonl", {"text": "some text"})
    prepare(request)
    monkeypatch.setattr(ByteTokenizer, "encode_as_they_are", None)
    assert prepare(request).was_there


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


def test_a_source_that_grows_behind_its_hash_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = lines(tmp_path / "data.jsonl", {"text": "some text"})
    hashed = preparing.content_sha256

    def with_a_writer(*arguments: Any) -> str:
        found = hashed(*arguments)
        lines(tmp_path / "data.jsonl", {"text": "some text"}, {"text": "another text"})
        return found

    monkeypatch.setattr(preparing, "content_sha256", with_a_writer)
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
