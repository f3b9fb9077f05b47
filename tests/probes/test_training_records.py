"""Is the text of the user's records what is trained on, and is each wrong record named?"""

import importlib.util
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.messages.tasks import DatasetText, FileText, JsonLinesText
from broadgauge.probes.training.records import read_dataset, read_json_lines
from broadgauge.probes.training.sources import read_text
from broadgauge.probes.training.text import MAX_TEXT_BYTES
from broadgauge.probes.trial import RefusedError

TEXTS = ["first", "zweiter Satz: ä", "third\nwith a second line"]


def lines_of(path: str, field: str = "text") -> JsonLinesText:
    return JsonLinesText(path=path, field=field)


def hub(dataset: str, **changes: str) -> DatasetText:
    settings = {"subset": None, "split": "train", "field": "text"} | changes
    return DatasetText(dataset=dataset, **settings)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1), st.booleans())
def test_json_lines_give_every_text_in_order(tmp_path_factory, texts, is_nested):
    path = tmp_path_factory.mktemp("lines") / "data.jsonl"
    made = [
        {"document": {"body": text}, "id": 1} if is_nested else {"body": text} for text in texts
    ]
    path.write_text("\n\n".join(map(json.dumps, made)) + "\n")
    field = "document.body" if is_nested else "body"
    read = read_json_lines(lines_of(str(path), field=field))
    assert read.content == "".join(text + "\n" for text in texts).encode()
    assert read.source == f"{path}, `{field}` of {len(texts)} records"


def test_reading_ends_where_there_is_enough(tmp_path):
    """What follows is not even looked at."""
    path = tmp_path / "data.jsonl"
    line = json.dumps({"text": "a" * 2**20}) + "\n"
    path.write_text(line * 17 + "no JSON\n")
    read = read_json_lines(lines_of(str(path)))
    assert len(read.content) == MAX_TEXT_BYTES
    assert "`text` of 16 records" in read.description


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"text": "torn', "not a line of JSON: Unterminated string starting at, column 10"),
        (b'{"text": "\xff"}', "not UTF-8: invalid start byte, byte 11"),
        (b'{"txet": "a"}', "no key `text`; did you mean `txet`?"),
        (b'{"id": 1}', "no key `text`; known: id"),
        (b"[1, 2]", "no object to find `text` in, but list '[1, 2]'"),
        (b'{"text": null}', "`text` is no text, but null"),
        (b'{"text": 7}', "`text` is no text, but int '7'"),
        (rb'{"text": "a\ud800b"}', r"`text` can't be UTF-8: \ud800 at character 2 is half a pair"),
        (b'{"text": ' + b"[" * 100_000, "nested too deep to be read"),
        (b'{"text": ' + b"1" * 5_000 + b"}", "not a line of JSON: Exceeds the limit"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, words):
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"text": "good"}\n\n' + line + b"\n")
    with pytest.raises(RefusedError) as refused:
        read_json_lines(lines_of(str(path)))
    assert str(refused.value).startswith(f"{path}:3: {words}")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RefusedError, match=r"none\.jsonl` can't be read: No such file"):
        read_json_lines(lines_of(str(tmp_path / "none.jsonl")))


def test_the_missing_library_is_refused_with_its_installation(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RefusedError, match=r"pip install 'broadgauge\[data\]'"):
        read_dataset(hub("wikitext"))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folders that the library itself has saved: one data set, and one with splits."""
    import datasets

    folder = tmp_path_factory.mktemp("saved")
    rows = datasets.Dataset.from_dict({"text": TEXTS, "meta": [{"name": text} for text in TEXTS]})
    rows.save_to_disk(folder / "one")
    halves = {"train": rows.select([0, 1]), "test": rows.select([2])}
    datasets.DatasetDict(halves).save_to_disk(folder / "split")
    return folder


@pytest.mark.measuring
@pytest.mark.parametrize(
    ("name", "changes", "texts"),
    [
        ("one", {}, TEXTS),
        ("one", {"field": "meta.name"}, TEXTS),
        ("split", {}, TEXTS[:2]),
        ("split", {"split": "test"}, TEXTS[2:]),
    ],
)
def test_a_saved_data_set_is_read(saved, name, changes, texts):
    source = hub(str(saved / name), **changes)
    read = read_dataset(source)
    assert read.content == "".join(text + "\n" for text in texts).encode()
    assert read.description.startswith(f"{source.dataset} {source.split}, `{source.field}` of ")
    assert f" {len(texts)} records, {len(read.content)} bytes, SHA-256 " in read.description


@pytest.mark.measuring
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"field": "txt"}, "row 0: no key `txt`; did you mean `text`?"),
        ({"split": "validation"}, "validation"),
    ],
)
def test_what_a_saved_data_set_does_not_have_is_named(saved, changes, words):
    with pytest.raises(RefusedError) as refused:
        read_dataset(hub(str(saved / "split"), **changes))
    assert words in str(refused.value)


@pytest.mark.slow
@pytest.mark.measuring
def test_a_data_set_that_is_not_on_this_machine_is_refused_with_how_to_fetch_it():
    source = hub("nobody/nothing-here", subset="small")
    with pytest.raises(RefusedError) as refused:
        read_dataset(source)
    assert "load_dataset('nobody/nothing-here', 'small')" in str(refused.value)


def test_a_fifo_is_refused_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(RefusedError, match="fifo` is a FIFO, no file"):
        read_json_lines(lines_of(str(tmp_path / "fifo")))
    with pytest.raises(RefusedError, match="/dev/zero` is a device, no file"):
        read_text(FileText(path="/dev/zero"))


def test_half_a_pair_in_a_key_is_written_out(tmp_path):
    """The message goes on as UTF-8."""
    path = tmp_path / "data.jsonl"
    path.write_bytes(rb'{"\ud800": 1}')
    with pytest.raises(RefusedError) as refused:
        read_json_lines(lines_of(str(path)))
    assert rb"no key `text`; known: \ud800" in str(refused.value).encode()
