"""Is only our own folder written and removed, and is what is refused said with place and hint?"""

import errno
import os

import pytest

from broadgauge.messages.storage import StoragePlace
from broadgauge.probes.storage import place as places
from broadgauge.probes.storage.limits import HangsError, within
from broadgauge.probes.storage.objects import masked
from broadgauge.probes.storage.place import MARKER, check_space, claim, release, remove_part
from broadgauge.probes.storage.problems import describe
from broadgauge.probes.trial import RefusedError


def on(folder):
    return StoragePlace(name="here", folder=str(folder))


def test_our_folder_is_made_and_gone_and_others_stay(tmp_path):
    (tmp_path / "theirs").write_text("x")
    own = claim(on(tmp_path), "t1")
    assert claim(on(tmp_path), "t1") == own  # another rank
    assert own.path(MARKER).read_text() == "t1"
    own.path("raw").mkdir()
    own.path("raw/large").write_text("x")
    assert release(own) is None
    assert release(own) is None  # another rank
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


@pytest.mark.parametrize("marker", [None, "another"])
def test_a_folder_that_is_not_ours_is_refused_and_untouched(tmp_path, marker):
    theirs = tmp_path / "broadgauge-storage-t1"
    theirs.mkdir()
    (theirs / "data").write_text("x")
    if marker is not None:
        (theirs / MARKER).write_text(marker)
    with pytest.raises(RefusedError, match="not touched"):
        claim(on(tmp_path), "t1")
    assert (theirs / "data").read_text() == "x"


def test_another_rank_of_ours_may_make_the_marker_while_we_look(tmp_path, monkeypatch):
    """It is listed before the marker is looked for, so that the marker alone is nobody else's."""
    folder = tmp_path / "broadgauge-storage-t1"
    folder.mkdir()
    listed = places._names_in

    def slower_than_the_other_rank(of):
        (of / MARKER).write_text("t1")
        return listed(of)

    monkeypatch.setattr(places, "_names_in", slower_than_the_other_rank)
    assert claim(on(tmp_path), "t1").folder == str(folder)


def test_a_mount_that_forgets_the_empty_folder_is_told_again(tmp_path, monkeypatch):
    """Two nodes of an emulated bucket, 1 trial of 12: made, and not there for its first file."""
    made = places.Path.mkdir
    forgotten = iter([True])

    def forgetful(folder, **named):
        if not next(forgotten, False):
            made(folder, **named)

    monkeypatch.setattr(places.Path, "mkdir", forgetful)
    own = claim(on(tmp_path), "t1")
    assert own.path(MARKER).read_text() == "t1"


def test_a_folder_that_never_comes_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(places.Path, "mkdir", lambda folder, **named: None)
    with pytest.raises(FileNotFoundError):
        claim(on(tmp_path), "t1")


def test_what_others_put_into_our_folder_stays_and_is_named(tmp_path):
    own = claim(on(tmp_path), "t1")
    own.path("notes.txt").write_text("x")
    stays = release(own)
    assert stays is not None
    assert "notes.txt" in stays
    assert own.path("notes.txt").read_text() == "x"


def test_nothing_else_can_be_removed(tmp_path):
    own = claim(on(tmp_path), "t1")
    for name in ("..", "", "other", "../theirs"):
        with pytest.raises(ValueError, match="not in one of"):
            remove_part(own, name)


def test_a_link_out_of_our_folder_is_not_followed(tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "data").write_text("x")
    own = claim(on(tmp_path), "t1")
    own.path("raw").symlink_to(theirs)
    own.path("models").mkdir()
    own.path("models/link").symlink_to(theirs)
    assert release(own) is None
    assert (theirs / "data").read_text() == "x"


def test_a_missing_folder_is_said_with_a_hint(tmp_path):
    with pytest.raises(RefusedError, match=r"no such folder[^\n]*\nhint: mount it"):
        claim(on(tmp_path / "missing"), "t1")


def test_more_than_is_free_is_refused_before_it_is_written(tmp_path, monkeypatch):
    own = claim(on(tmp_path), "t1")
    state = os.statvfs(tmp_path)
    check_space(own, state.f_bavail * state.f_frsize // 2)
    with pytest.raises(RefusedError, match=r"of free space, .* are to be written"):
        check_space(own, 2**60)


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "is full"),
        (errno.EROFS, "is read-only"),
        (errno.EACCES, "refuses this user"),
        (errno.EBUSY, "asks to slow down"),
        (errno.ENOTCONN, "is mounted no more"),
    ],
)
def test_a_problem_names_place_value_and_hint(number, says):
    text = describe(OSError(number, os.strerror(number), "/mnt/x/f"), "disk (/mnt/x)", "raw/write")
    assert text.startswith(f"disk (/mnt/x) {says} (raw/write): ")
    assert "/mnt/x/f" in text
    assert "\nhint: " in text


def test_credentials_are_never_repeated(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sesame")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAX")
    error = PermissionError(errno.EACCES, "signature of AKIAX with sesame does not match")
    said = describe(error, "bucket", "raw/write")
    assert "sesame" not in said
    assert "AKIAX" not in said
    assert masked("nothing") == "nothing"


def test_what_hangs_is_left_after_its_limit():
    import threading

    freed = threading.Event()
    with pytest.raises(HangsError, match=r"listing: no answer for 0\.02 s"):
        within(0.02, "listing", freed.wait)
    freed.set()
    assert within(1, "one", lambda: 1) == 1
    with pytest.raises(KeyError):
        within(1, "none", lambda: {}["none"])


def test_two_ranks_may_remove_the_same_folder(tmp_path, monkeypatch):
    own = claim(on(tmp_path), "t1")
    own.path("raw").mkdir()
    (own.path("raw") / "large").write_text("x")
    other = places.shutil.rmtree

    def slower(path, onerror):
        other(path)  # the other rank
        other(path, onerror=onerror)

    monkeypatch.setattr(places.shutil, "rmtree", slower)
    remove_part(own, "raw")
    assert not own.path("raw").exists()
