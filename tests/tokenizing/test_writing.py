"""Is a set on the disk whole or not there, whatever ends its preparation or stands in its way?"""

import errno
import os
import resource
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.tokenizing.made_records import lines
from tests.tokenizing.reading import samples_in

from broadgauge.messages.prepared_set import PreparedSetError, read_prepared_set
from broadgauge.specs.errors import InputError
from broadgauge.tokenizing import preparing, writing
from broadgauge.tokenizing.preparing import prepare


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


def test_a_set_without_its_description_is_never_taken_for_whole(tmp_path: Path) -> None:
    """Which is written last: files of an interrupted copy, say."""
    request = replace(lines(tmp_path / "data.jsonl", {"text": "text"}), out=tmp_path / "set")
    made = prepare(request)
    (made.folder / "set.json").unlink()
    with pytest.raises(InputError, match="is there, and is no prepared set"):
        prepare(request)
    with pytest.raises(PreparedSetError, match=r"has no set\.json"):
        read_prepared_set(made.folder)


def test_a_set_that_was_changed_is_not_used_again(tmp_path: Path) -> None:
    request = lines(tmp_path / "data.jsonl", {"text": "some text"})
    path = prepare(request).folder / "tokens.bin"
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(InputError, match=r"tokens\.bin` was changed") as refused:
        prepare(request)
    assert refused.value.hint == f"rm -r {path.parent}"


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


def test_two_sets_at_once_for_one_folder_are_not_taken_for_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = replace(lines(tmp_path / "mine.jsonl", {"text": "mine"}), out=tmp_path / "set")
    other = replace(lines(tmp_path / "other.jsonl", {"text": "other"}), out=tmp_path / "set")
    whole = preparing.samples_of

    def with_another(*arguments: Any) -> Iterator[Any]:
        monkeypatch.setattr(preparing, "samples_of", whole)
        prepare(other)
        yield from whole(*arguments)

    monkeypatch.setattr(preparing, "samples_of", with_another)
    with pytest.raises(InputError, match=r"holds another prepared set .*other\.jsonl"):
        prepare(mine)
    assert samples_in(tmp_path / "set") == [list(b"other")]


def test_what_is_in_the_way_stays(tmp_path: Path) -> None:
    request = lines(tmp_path / "data.jsonl", {"text": "some text"})
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="is there, and is no prepared set"):
        prepare(replace(request, out=mine))
    first = prepare(replace(request, out=tmp_path / "set"))
    with pytest.raises(InputError, match=r"holds another prepared set .*data\.jsonl"):
        prepare(replace(request, out=tmp_path / "set", kind="text"))
    assert samples_in(first.folder) == [list(b"some text")]


@pytest.mark.parametrize("name", ["x" * 300, "nofolder.txt/set"])
def test_a_place_that_can_not_be_is_said(tmp_path: Path, name: str) -> None:
    request = lines(tmp_path / "data.jsonl", {"text": "some text"})
    (tmp_path / "nofolder.txt").write_text("")
    with pytest.raises(InputError, match=r"set.*`.* can't be (read|written)") as raised:
        prepare(replace(request, out=tmp_path / name))
    assert "--out FOLDER" in str(raised.value)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_place_that_takes_no_file_is_said_of_the_set(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, one that is mounted to be read alone, somebody else's folder."""

    def refuses(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    request = lines(tmp_path / "data.jsonl", {"text": "some text"})
    for module, name in ((tempfile, "mkdtemp"), (writing, "_Output")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, refuses)
            with pytest.raises(InputError) as refused:
                prepare(request)
        said = f"can't be written: {os.strerror(number)}\n  hint: --out FOLDER"
        assert said in str(refused.value)


def test_a_disk_that_fills_in_the_middle_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    """The kernel refuses to write beyond a limit: as of a full disk, with another word."""
    request = lines(tmp_path / "data.jsonl", *({"text": "a" * 5000} for _ in range(40)))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(InputError, match=r"prepared set .* can't be written: File too large"):
            prepare(request)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(cache.iterdir()) == []
    assert prepare(request).described.num_tokens == 200_000
