"""Proves manifests/fetch_to_volume.py as the Job runs it: a process of its own, given variables."""

import functools
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import broadgauge.manifests

SCRIPT = Path(broadgauge.manifests.__file__).with_name("fetch_to_volume.py")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def run(
    asked: dict[str, Any], tmp_path: Path, **variables: str
) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **variables}
    environment["BROADGAUGE_PREPARE"] = json.dumps(asked)
    return subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def item(source: str, kind: str = "model", **more: str) -> dict[str, Any]:
    return {"name": f"{kind}-x", "kind": kind, "source": source, **more}


def archive(path: Path, members: dict[str, bytes]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as packed:
            for name, data in members.items():
                packed.writestr(name, data)
        return path
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    return path


@pytest.mark.parametrize("form", ["folder", "tar.gz", "zip", "file://", "plain"])
def test_what_is_here_is_fetched_once(tmp_path: Path, form: str) -> None:
    volume = tmp_path / "volume"
    if form == "folder":
        source = tmp_path / "weights"
        (source / "deep").mkdir(parents=True)
        (source / "deep/a.bin").write_bytes(b"one")
    elif form == "plain":
        source = tmp_path / "a.bin"
        source.write_bytes(b"one")
    else:
        name = "w.tar.gz" if form == "file://" else f"w.{form}"
        source = archive(tmp_path / name, {"deep/a.bin": b"one"})
    asked = {"folder": str(volume), "items": [item(str(source))]}
    if form == "file://":
        asked["items"] = [item(source.as_uri())]
    first = run(asked, tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    found = volume / "model-x" / ("a.bin" if form == "plain" else "deep/a.bin")
    assert found.read_bytes() == b"one"
    done = json.loads((volume / "model-x/.broadgauge-done.json").read_text())
    assert done["size_bytes"] == 3
    found.write_bytes(b"mine")
    second = run(asked, tmp_path)
    assert second.returncode == 0
    assert "is there" in second.stdout
    assert found.read_bytes() == b"mine"
    assert [path.name for path in volume.iterdir()] == ["model-x"]


@contextmanager
def serving(answers: dict[str, tuple[int, dict[str, str], bytes]]) -> Iterator[str]:
    """A server of these paths: status, headers, content."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, content = answers.get(self.path.partition("?")[0], (404, {}, b""))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815  the name that the class looks for

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_what_killed_pods_have_left_goes_and_what_is_being_fetched_stays(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/a").write_text("a")
    folder = tmp_path / "volume"
    old, new, other = (folder / f".{name}.part" for name in ("model-x.p.1", "model-x.q.1", "y.p.1"))
    for part in (old, new, other):
        part.mkdir(parents=True)
        (part / "half").write_text("x")
    for path in (old / "half", old, other / "half", other, new):
        os.utime(path, (0, 0))
    asked = {"folder": str(folder), "items": [item(str(tmp_path / "source"))]}
    ended = run(asked, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert not old.exists()
    assert new.exists()
    assert other.exists()
    assert (folder / "model-x/a").is_file()


def test_url_of_an_archive_is_fetched_and_unpacked(tmp_path: Path) -> None:
    packed = archive(tmp_path / "w.tar.gz", {"a.bin": b"one"}).read_bytes()
    with serving({"/w.tar.gz": (200, {}, packed)}) as url:
        asked = {"folder": str(tmp_path / "v"), "items": [item(f"{url}/w.tar.gz?key=hidden")]}
        ran = run(asked, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "v/model-x/a.bin").read_bytes() == b"one"


def test_answer_that_ends_early_is_no_model(tmp_path: Path) -> None:
    with serving({"/a.bin": (200, {"Content-Length": "10"}, b"short")}) as url:
        asked = {"folder": str(tmp_path / "v"), "items": [item(f"{url}/a.bin")]}
        ran = run(asked, tmp_path)
    assert ran.returncode == 1
    assert list((tmp_path / "v").iterdir()) == []


def test_broken_answer_is_said_and_tried_again(tmp_path: Path) -> None:
    broken = (200, {"Transfer-Encoding": "chunked"}, b"64\r\nshort")
    with serving({"/a.bin": broken}) as url:
        ran = run({"folder": str(tmp_path / "v"), "items": [item(f"{url}/a.bin")]}, tmp_path)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "IncompleteRead" in ran.stdout


@pytest.mark.parametrize("source", ["http://[::1/a", "http://127.0.0.1:x/a", "http://h..x/a"])
def test_url_that_is_none_is_said_for_good(tmp_path: Path, source: str) -> None:
    ran = run({"folder": str(tmp_path / "v"), "items": [item(source)]}, tmp_path)
    assert (ran.returncode, ran.stderr) == (2, "")
    assert "is no URL that can be asked for" in ran.stdout


def test_log_and_volume_show_no_credentials(tmp_path: Path) -> None:
    with serving({"/a.bin": (200, {}, b"one")}) as url:
        signed = f"{url}/a.bin?X-Amz-Signature=SIGNED"
        asked = {"folder": str(tmp_path / "v"), "items": [item(signed)]}
        ran = [run(asked, tmp_path), run(asked, tmp_path)]
    for name in ("m", "m x"):
        gone = item(f"http://user:PASSWORD@127.0.0.1:1/{name}.tar?sig=SIGNED")
        asked = {"folder": str(tmp_path / "other"), "items": [gone]}
        ran.append(run(asked, tmp_path))
    assert [each.returncode for each in ran] == [0, 0, 1, 2]
    done = (tmp_path / "v/model-x/.broadgauge-done.json").read_text()
    said = done + "".join(each.stdout + each.stderr for each in ran)
    assert "127.0.0.1:1/m.tar" in said
    assert "SIGNED" not in said
    assert "PASSWORD" not in said


def test_missing_source_and_a_folder_of_somebody_else_are_said(tmp_path: Path) -> None:
    asked = {"folder": str(tmp_path / "v"), "items": [item("/no/such")]}
    ran = run(asked, tmp_path)
    assert (ran.returncode, "no such file or folder" in ran.stdout) == (2, True)
    (tmp_path / "v/model-x").mkdir()
    ran = run(asked, tmp_path)
    assert (ran.returncode, "was not made by this" in ran.stdout) == (2, True)
    ran = run({"folder": str(tmp_path / "v")}, tmp_path)
    assert (ran.returncode, "says nothing usable" in ran.stdout) == (2, True)


@pytest.mark.parametrize("name", ["../out", "/tmp/out"])
def test_archive_writes_nothing_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    source = archive(tmp_path / "w.tar.gz", {name: b"x"})
    ran = run({"folder": str(tmp_path / "v"), "items": [item(str(source))]}, tmp_path)
    assert ran.returncode == 2
    assert "no plain file below its folder" in ran.stdout
    assert list((tmp_path / "v").iterdir()) == []


def test_hub_is_asked_as_it_wants_to_be(tmp_path: Path) -> None:
    """A model's revision, its files by commit; the token goes with it and into no log."""
    pytest.importorskip("huggingface_hub")
    about = {"id": "me/tiny", "sha": COMMIT, "siblings": [{"rfilename": "config.json"}]}
    tree = [{"type": "file", "path": "config.json", "size": 2, "oid": "e" * 40}]
    headers = {"ETag": '"abc"', "X-Repo-Commit": COMMIT}
    as_json = {"Content-Type": "application/json"}
    answers = {
        "/api/models/me/tiny/revision/v1": (200, as_json, json.dumps(about).encode()),
        f"/api/models/me/tiny/tree/{COMMIT}": (200, as_json, json.dumps(tree).encode()),
        f"/me/tiny/resolve/{COMMIT}/config.json": (200, headers, b"{}"),
    }
    with serving(answers) as url:
        asked = {"folder": str(tmp_path / "v"), "items": [item("me/tiny", revision="v1")]}
        ran = run(asked, tmp_path, HF_ENDPOINT=url, HF_TOKEN="hf_secret")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "v/model-x/config.json").read_bytes() == b"{}"
    assert "hf_secret" not in ran.stdout + ran.stderr


def test_model_that_the_hub_has_not_is_said(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    with serving({}) as url:
        asked = {"folder": str(tmp_path / "v"), "items": [item("me/none", revision="main")]}
        ran = run(asked, tmp_path, HF_ENDPOINT=url)
    assert ran.returncode == 1
    assert "me/none: " in ran.stdout
    assert list((tmp_path / "v").iterdir()) == []


def test_command_runs_once_with_what_was_fetched(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    code = (
        "import os,pathlib;p=pathlib.Path(os.environ['BROADGAUGE_PREPARED'],'n');"
        "p.write_text(p.read_text()+'x' if p.exists() else os.environ['BROADGAUGE_MODEL'])"
    )
    command = {"name": "command-1", "words": [sys.executable, "-c", code]}
    volume = tmp_path / "v"
    asked = {"folder": str(volume), "items": [item(str(tmp_path / "w"))], "command": command}
    for _ in range(2):
        assert run(asked, tmp_path).returncode == 0
    assert (volume / "command-1/n").read_text() == str(volume / "model-x")
    asked["command"] = {"name": "command-2", "words": [sys.executable, "-c", "raise SystemExit(3)"]}
    ran = run(asked, tmp_path)
    assert (ran.returncode, "ended with 3" in ran.stdout) == (1, True)


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
def test_what_signs_a_source_is_in_no_log(source: str, tmp_path: Path) -> None:
    ran = run({"folder": str(tmp_path / "v"), "items": [item(source)]}, tmp_path)
    assert ran.returncode != 0
    assert "SEKRIT" not in ran.stdout + ran.stderr
    assert ran.stderr == ""


def test_what_signs_a_source_is_not_kept_beside_what_came(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web/a.bin").write_bytes(b"one")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "web"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        source = f"http://127.0.0.1:{server.server_port}/a.bin?sig=SEKRIT"
        ran = run({"folder": str(tmp_path / "v"), "items": [item(source)]}, tmp_path)
        server.shutdown()
    assert ran.returncode == 0, ran.stdout
    kept = "".join(path.read_text() for path in (tmp_path / "v").rglob("*") if path.is_file())
    assert "one" in kept
    assert "SEKRIT" not in ran.stdout + kept


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("ftp://ada:SEKRIT@127.0.0.1:1/a.bin", "from http to ftp"),
        (
            "file:///etc/hostname?sig=SEKRIT",
            "302 Found - Redirection to url 'file:///etc/hostname?***",
        ),
        ("http://h..x/a.bin?sig=SEKRIT", "or redirects to one that is none"),
        ("/a.bin?sig=SEKRIT", "infinite loop"),
    ],
)
def test_redirect_that_is_not_followed_is_said_once_for_good(
    tmp_path: Path, to: str, words: str
) -> None:
    with serving({"/a.bin": (302, {"Location": to}, b"")}) as url:
        asked = {"folder": str(tmp_path / "v"), "items": [item(f"{url}/a.bin")]}
        ran = run(asked, tmp_path)
    said = ran.stdout.splitlines()
    assert (ran.returncode, ran.stderr, len(said)) == (2, "", 2)
    assert words in said[1]
    assert "SEKRIT" not in ran.stdout


def test_done_file_of_a_command_shows_no_credentials(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "", "https://ada:SEKRIT@h/a?sig=SEKRIT"]
    asked = {"folder": str(tmp_path / "v"), "items": [], "command": {"name": "c", "words": words}}
    ran = run(asked, tmp_path)
    assert ran.returncode == 0, ran.stdout
    done = (tmp_path / "v/c/.broadgauge-done.json").read_text()
    assert json.loads(done)["words"][3] == "https://h/a?***"


def test_source_without_the_hub_library_shows_no_credentials(tmp_path: Path) -> None:
    (tmp_path / "huggingface_hub.py").write_text("raise ImportError")
    asked = {"folder": str(tmp_path / "v"), "items": [item("s3://ada:SEKRIT@b/m?sig=SEKRIT")]}
    ran = run(asked, tmp_path, PYTHONPATH=str(tmp_path))
    assert (ran.returncode, ran.stderr) == (2, "")
    assert "s3://b/m" in ran.stdout
    assert "SEKRIT" not in ran.stdout
