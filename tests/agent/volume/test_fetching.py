"""Proves how a model or data set gets into its folder: from where, whole, once, nowhere else."""

import bz2
import errno
import gzip
import hashlib
import io
import json
import lzma
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.agent.volume.content_server import Answer, serving
from tests.agent.volume.folders import contents, fetched, order_of
from tests.agent.volume.pods import archive

from broadgauge.agent.volume import disk, downloads, locks
from broadgauge.agent.volume.fetching import fetch
from broadgauge.agent.volume.telling import FetchError, LastingError
from broadgauge.messages.prepare_order import DONE, FetchOrder


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_ENDPOINT", "HF_TOKEN", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("form", ["folder", "w.tar.gz", "w.zip", "file:w.tar.gz", "plain"])
def test_what_is_here_is_fetched_once(tmp_path: Path, form: str) -> None:
    source = tmp_path / form.rpartition(":")[2]
    if form == "folder":
        (source / "deep").mkdir(parents=True)
        (source / "blob").write_bytes(b"one")
        (source / "deep/a.bin").symlink_to("../blob")  # as in a cache of the hub's
    elif form == "plain":
        source.write_bytes(b"one")
    else:
        archive(source, {"deep/a.bin": b"one"})
    text = source.as_uri() if form.startswith("file:") else str(source)
    place = fetched(tmp_path, text)
    name = "plain" if form == "plain" else "deep/a.bin"
    assert contents(place)[name] == b"one"
    assert not any(path.is_symlink() for path in place.rglob("*"))
    assert json.loads((place / DONE).read_text())["size_bytes"] == 3 * len(contents(place))
    (place / name).write_bytes(b"mine")
    assert contents(fetched(tmp_path, text))[name] == b"mine"
    assert sorted(path.name for path in place.parent.iterdir()) == [".model-x.lock", "model-x"]


def test_a_url_is_fetched_and_an_archive_unpacked(tmp_path: Path) -> None:
    packed = archive(tmp_path / "w.tgz", {"./": b"", "a.bin": b"one"} | {"b/c": b"two"})
    model = zipped({"x": b"inside"})
    answers = {"/w.tgz": Answer(content=packed.read_bytes()), "/m.pt": Answer(content=model)}
    with serving(answers) as server:
        place = fetched(tmp_path / "1", f"{server.url}/w.tgz?key=SEKRIT")
        as_it_was = fetched(tmp_path / "2", f"{server.url}/m.pt")
    assert contents(place) == {"a.bin": b"one", "b/c": b"two"}
    assert "SEKRIT" not in (place / DONE).read_text()
    assert contents(as_it_was) == {"m.pt": model}  # which is a zip inside


def test_a_url_that_gives_something_else_than_was_said_is_refused(tmp_path: Path) -> None:
    right = hashlib.sha256(b"right").hexdigest()
    answers = {"/a.bin": Answer(content=b"wrong")}
    with serving(answers) as server, pytest.raises(FetchError, match=f"and {right} was promised"):
        fetched(tmp_path, f"{server.url}/a.bin", sha256=right)
    with serving({"/a.bin": Answer(content=b"right")}) as server:
        place = fetched(tmp_path, f"{server.url}/a.bin", sha256=right)
    assert contents(place) == {"a.bin": b"right"}


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return buffer.getvalue()


def test_what_a_killed_pod_had_unpacked_is_unpacked_anew(tmp_path: Path) -> None:
    source = archive(tmp_path / "w.tar.gz", {"a.bin": b"whole"})
    room = tmp_path / "v/broadgauge/.model-x.part-old/whole"
    room.mkdir(parents=True)
    (room / "a.bin").write_bytes(b"who")
    (room / "b.bin").write_bytes(b"of another")
    assert contents(fetched(tmp_path, str(source))) == {"a.bin": b"whole"}


def test_a_connection_that_breaks_off_is_gone_on_with(tmp_path: Path) -> None:
    with serving({"/a.bin": Answer(content=b"0123456789", breaks_at=4)}) as server:
        place = fetched(tmp_path, f"{server.url}/a.bin")
        first, second = server.of("/a.bin")
    assert "Range" not in first.headers
    assert (second.headers["Range"], second.headers["If-Range"]) == ("bytes=4-", '"1"')
    assert contents(place) == {"a.bin": b"0123456789"}


@pytest.mark.parametrize("etag", ['"2"', 'W/"1"', ""])
def test_another_content_or_one_without_a_name_begins_anew(tmp_path: Path, etag: str) -> None:
    """What there was is of the ETag "1"."""
    room = tmp_path / "v/broadgauge/.model-x.part-old/downloads"
    room.mkdir(parents=True)
    (room / ".partial").write_bytes(b"old")
    (room / ".partial.state").write_text('"1"')
    with serving({"/a.bin": Answer(content=b"other", etag=etag)}) as server:
        assert contents(fetched(tmp_path, f"{server.url}/a.bin")) == {"a.bin": b"other"}


def test_a_pod_that_was_killed_when_all_had_come_needs_no_more(tmp_path: Path) -> None:
    room = tmp_path / "v/broadgauge/.model-x.part-old/downloads"
    room.mkdir(parents=True)
    (room / ".partial").write_bytes(b"whole")
    (room / ".partial.state").write_text('"1"')
    with serving({"/a.bin": Answer(content=b"whole")}) as server:
        assert contents(fetched(tmp_path, f"{server.url}/a.bin")) == {"a.bin": b"whole"}
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(content=b"", headers={"Content-Length": "10"}),
        Answer(content=b"64\r\nshort", headers={"Transfer-Encoding": "chunked"}),
        Answer(status=503),
    ],
)
def test_an_answer_that_is_not_whole_is_no_model(tmp_path: Path, answer: Answer) -> None:
    """And another try may help."""
    with serving({"/a.bin": answer}) as server, pytest.raises(FetchError) as failed:
        fetched(tmp_path, f"{server.url}/a.bin")
    assert not isinstance(failed.value, LastingError)
    assert not (tmp_path / "v/broadgauge/model-x").exists()


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("ftp://ada:SEKRIT@127.0.0.1:1/a.bin", "from http to ftp"),
        ("http://h..x/a.bin?sig=SEKRIT", "or redirects to one that is none"),
        ("/a.bin?sig=SEKRIT", "infinite loop"),
    ],
)
def test_a_redirect_that_is_not_followed_is_said_once_for_good(
    tmp_path: Path, to: str, words: str
) -> None:
    answer = Answer(status=302, headers={"Location": to})
    with serving({"/a.bin": answer}) as server, pytest.raises(LastingError) as failed:
        fetched(tmp_path, f"{server.url}/a.bin")
    assert words in str(failed.value)
    assert "SEKRIT" not in str(failed.value)


@pytest.mark.parametrize(
    "source",
    [
        "http://ada:SEKRIT@127.0.0.1:1/m.tar?X-Amz-Signature=SEKRIT#SEKRIT",
        "http://127.0.0.1:1/m x.tar?sig=SEKRIT",
        "http://127.0.0.1:x/m.tar?sig=SEKRIT",
        "http://[::1/m.tar?sig=SEKRIT",
        "http://ada:SEKRIT SEKRIT@127.0.0.1:1/m.tar",
        "http://ada:SEKRIT/SEKRIT@127.0.0.1:1/m.tar",
    ],
)
def test_what_signs_a_source_is_in_no_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str
) -> None:
    with pytest.raises(FetchError) as failed:
        fetched(tmp_path, source)
    assert "SEKRIT" not in str(failed.value) + capsys.readouterr().out


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out"])
@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
def test_an_archive_writes_nothing_outside_of_its_folder(
    tmp_path: Path, name: str, ending: str
) -> None:
    source = archive(tmp_path / f"w{ending}", {name: b"x"})
    with pytest.raises(LastingError, match="does not lie below its folder"):
        fetched(tmp_path, str(source))
    names = {path.name for path in tmp_path.rglob("*")}
    assert "out" not in names
    assert "model-x" not in names


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (tarfile.SYMTYPE, "is a link or device"),
        (tarfile.LNKTYPE, "does not lie below its folder"),
        (tarfile.FIFOTYPE, "is a link or device"),
    ],
)
def test_an_archive_has_no_links_and_devices(tmp_path: Path, kind: bytes, words: str) -> None:
    """By a link the next member would write elsewhere."""
    source = tmp_path / "w.tar"
    with tarfile.open(source, "w") as tar:
        about = tarfile.TarInfo("a")
        about.type, about.linkname = kind, str(tmp_path)
        tar.addfile(about)
        below = tarfile.TarInfo("a/out")
        tar.addfile(below)
    with pytest.raises(LastingError, match=words):
        fetched(tmp_path, str(source))
    assert not (tmp_path / "out").exists()


def test_a_hard_link_is_another_file_of_the_same_content(tmp_path: Path) -> None:
    source = archive(tmp_path / "w.tar.gz", {"d/a": b"one"})
    source.write_bytes(gzip.compress(linking(source, "d/b", "d/a")))
    assert contents(fetched(tmp_path, str(source))) == {"d/a": b"one", "d/b": b"one"}


@pytest.mark.parametrize("to", ["d/b", "d/none"])
def test_a_hard_link_to_no_member_before_it_is_refused(tmp_path: Path, to: str) -> None:
    source = archive(tmp_path / "w.tar.gz", {"d/a": b"one"})
    source.write_bytes(gzip.compress(linking(source, "d/b", to)))
    with pytest.raises(LastingError, match="which is no member before it"):
        fetched(tmp_path, str(source))


def linking(source: Path, name: str, to: str) -> bytes:
    """The tar in it with a hard link more."""
    buffer = io.BytesIO(gzip.decompress(source.read_bytes()))
    with tarfile.open(fileobj=buffer, mode="a:") as tar:
        about = tarfile.TarInfo(name)
        about.type, about.linkname = tarfile.LNKTYPE, to
        tar.addfile(about)
    return buffer.getvalue()


@pytest.mark.parametrize("form", ["gz", "bz2", "xz", "cut", "header"])
def test_an_archive_that_is_broken_or_cut_is_not_taken_for_whole(tmp_path: Path, form: str) -> None:
    """A flipped bit of each compression's own checksum; a tar that ends between two members, and
    one in which the second is no header."""
    source = archive(tmp_path / "w.tar.gz", {"a": b"1" * 512, "b": b"2" * 512})
    plain = gzip.decompress(source.read_bytes())
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    broken = bytearray(pack[form](plain) if form in pack else plain)
    if form == "gz":
        broken[-8] ^= 1
    elif form == "bz2":
        broken[10] ^= 1
    elif form == "xz":
        broken[len(broken) // 2] ^= 1
    elif form == "cut":
        del broken[1024:]
    else:
        broken[1024] ^= 1
    target = tmp_path / ("w.tar" if form in {"cut", "header"} else f"w.tar.{form}")
    target.write_bytes(broken)
    with pytest.raises(LastingError, match="can't be unpacked"):
        fetched(tmp_path, str(target))
    assert not (tmp_path / "v/broadgauge/model-x").exists()


def test_an_archive_of_which_nobody_said_the_length_is_fetched_again(tmp_path: Path) -> None:
    """It may be cut by its connection: another try may help, and finds nothing of it."""
    whole = archive(tmp_path / "w.tgz", {"a": b"1" * 512}).read_bytes()
    served = {"/w.tgz": Answer(content=whole[:-9], has_length=False)}
    with serving(served) as server:
        with pytest.raises(FetchError, match="may be cut") as failed:
            fetched(tmp_path, f"{server.url}/w.tgz")
        assert not isinstance(failed.value, LastingError)
        served["/w.tgz"] = Answer(content=whole, has_length=False)
        assert contents(fetched(tmp_path, f"{server.url}/w.tgz")) == {"a": b"1" * 512}


@pytest.mark.parametrize("content", [b"no archive", b"\x1f\x8b\x08broken"])
def test_an_archive_that_is_none_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.tar.gz").write_bytes(content)
    with pytest.raises(LastingError, match=r"w\.tar\.gz can't be unpacked"):
        fetched(tmp_path, str(tmp_path / "w.tar.gz"))


def test_what_is_not_there_and_a_folder_of_somebody_else_are_said(tmp_path: Path) -> None:
    with pytest.raises(LastingError, match="no such file or folder"):
        fetched(tmp_path, "/no/such")
    place = tmp_path / "v/broadgauge/model-x"
    place.mkdir()
    with pytest.raises(LastingError, match="was not made by this"):
        fetched(tmp_path, "/no/such")


def test_a_folder_is_not_copied_into_itself(tmp_path: Path) -> None:
    with pytest.raises(LastingError, match="has what is fetched in it"):
        fetched(tmp_path, str(tmp_path))
    (tmp_path / "w").mkdir()
    (tmp_path / "w/circle").symlink_to(tmp_path / "w")
    with pytest.raises(LastingError, match="leads back"):
        fetched(tmp_path, str(tmp_path / "w"))


def test_a_users_name_leads_to_what_was_asked_for_last(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.bin").write_text(name)
    link = tmp_path / "v/model/mine"
    for name in ("one", "two"):
        part = FetchOrder(
            kind="model", name=f"model-{name}", source=str(tmp_path / f"{name}.bin"),
            file=f"{name}.bin", link=str(link),
        )  # fmt: skip
        fetch(order_of(tmp_path, part), part)
        assert link.read_text() == name
        assert str(link.readlink()) == f"../broadgauge/model-{name}/{name}.bin"
    assert [path.name for path in link.parent.iterdir()] == ["mine"]


@pytest.mark.parametrize("form", ["folder", "file", "link"])
def test_what_is_the_users_own_is_never_replaced(tmp_path: Path, form: str) -> None:
    """And nothing is fetched before that is known."""
    link = tmp_path / "v/model"
    link.parent.mkdir()
    if form == "folder":
        link.mkdir()
    elif form == "file":
        link.touch()
    else:
        link.symlink_to("elsewhere")
    with pytest.raises(LastingError, match="another `to`"):
        fetched(tmp_path, str(tmp_path), link=str(link))
    assert [path.name for path in link.parent.iterdir()] == ["model"]


def test_a_volume_without_locks_is_filled_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(37, os.strerror(37))

    monkeypatch.setattr(locks.fcntl, "lockf", refuse)
    (tmp_path / "a.bin").write_bytes(b"one")
    assert contents(fetched(tmp_path, str(tmp_path / "a.bin"))) == {"a.bin": b"one"}
    assert "gives no locks (No locks available)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the volume needs more room"),
        (errno.EDQUOT, "the volume needs more room"),
        (errno.EROFS, "must be able to write there"),
        (errno.EACCES, "must be able to write there"),
    ],
)
def test_what_the_volume_can_not_do_is_said_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    (tmp_path / "a.bin").write_bytes(b"one")
    monkeypatch.setattr(disk.os, "fsync", refuse)
    with pytest.raises(LastingError, match=words):
        fetched(tmp_path, str(tmp_path / "a.bin"))
    assert not (tmp_path / "v/broadgauge/model-x").exists()


def test_a_volume_of_root_says_how_another_user_may_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(LastingError, match=rf"user {os.geteuid()}.*may not write.*fs_group"):
        fetched(tmp_path, "/usr")


def test_a_kill_where_another_content_begins_joins_no_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's content has changed, its new ETag is written, and nothing of it has come."""
    room = tmp_path / "v/broadgauge/.model-x.part-old/downloads"
    room.mkdir(parents=True)
    (room / ".partial").write_bytes(b"old")
    (room / ".partial.state").write_text('"old"')

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with serving({"/a.bin": Answer(content=b"another", etag='"new"')}) as server:
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(downloads, "_receive", kill)
            with pytest.raises(KeyboardInterrupt):
                fetched(tmp_path, f"{server.url}/a.bin")
        assert contents(fetched(tmp_path, f"{server.url}/a.bin")) == {"a.bin": b"another"}
