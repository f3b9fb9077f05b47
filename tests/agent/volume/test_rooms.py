"""Proves rooms.py: pods that see no lock of each other's write nothing of one another's."""

import shutil
from pathlib import Path

import pytest
from tests.agent.volume.folders import contents, fetched

from broadgauge.agent.volume import disk, fetching, rooms
from broadgauge.agent.volume.telling import FetchError
from broadgauge.messages.prepare_order import DONE


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "a.bin").write_bytes(b"one")
    return tmp_path / "a.bin"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "v/broadgauge/model-x"
    folder.parent.mkdir(parents=True)
    return folder


def test_what_a_pod_of_another_node_left_is_gone_on_with_when_it_beats_no_more(
    tmp_path: Path, source: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "STILL_S", 0.1)
    for name in ("old", "older"):
        left = place.with_name(f".model-x.part-{name}")
        (left / "whole").mkdir(parents=True)
        (left / "whole/a.bin").write_bytes(b"had come")
        (left / "beat").write_text("another 7")
    assert contents(fetched(tmp_path, str(source))) == {"a.bin": b"had come"}
    assert sorted(path.name for path in place.parent.iterdir()) == [".model-x.lock", "model-x"]


def test_a_pod_that_lost_its_folder_makes_nothing_of_what_is_left(
    tmp_path: Path, source: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was still for long: another has what it had, and goes on with it."""

    def lose(whole: Path) -> None:
        whole.parent.rename(place.with_name(".model-x.part-another"))
        whole.mkdir(parents=True)  # as a download makes its folder

    monkeypatch.setattr(fetching, "sync_below", lose)
    with pytest.raises(FetchError, match="another pod goes on with"):
        fetched(tmp_path, str(source))
    assert not place.exists()


def test_of_two_that_make_the_same_the_first_counts(
    tmp_path: Path, source: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_late(whole: Path) -> None:
        shutil.copytree(whole, place)
        (place / "a.bin").write_bytes(b"of the first")
        (place / DONE).write_text("{}")

    monkeypatch.setattr(fetching, "sync_below", be_late)
    assert contents(fetched(tmp_path, str(source))) == {"a.bin": b"of the first"}
    assert sorted(path.name for path in place.parent.iterdir()) == [".model-x.lock", "model-x"]


def test_all_is_on_the_disk_before_it_counts_as_whole(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    sync = disk.os.fsync

    def noted(number: int) -> None:
        synced.append(Path(f"/proc/self/fd/{number}").readlink().name)
        sync(number)

    monkeypatch.setattr(disk.os, "fsync", noted)
    fetched(tmp_path, str(source))
    assert synced == ["owner", "a.bin", "whole", DONE]


def test_the_folder_of_a_pod_that_just_begins_is_left_to_it(
    tmp_path: Path, source: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no beat yet."""
    other = place.with_name(".model-x.part-another")
    other.mkdir(parents=True)
    there: list[bool] = []
    monkeypatch.setattr(fetching, "sync_below", lambda _: there.append(other.exists()))
    assert contents(fetched(tmp_path, str(source))) == {"a.bin": b"one"}
    assert there == [True]
