"""Proves how a repository of the hub's is fetched: which files, all of one commit, told by whom."""

import json
from pathlib import Path

import pytest
from tests.agent.volume.content_server import Answer, serving
from tests.agent.volume.folders import contents, fetched
from tests.agent.volume.hub import COMMIT, REVISION, Hub

from broadgauge.agent.volume.telling import FetchError, LastingError
from broadgauge.messages.prepare_order import DONE


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_ENDPOINT", "HF_TOKEN", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_a_repository_comes_by_its_commit_and_the_token_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not to where the hub's own answer leads: a store's signed URL."""
    monkeypatch.setenv("HF_TOKEN", "hf_SEKRIT")
    hub = Hub({"config.json": b"{}", "deep/w.bin": b"w", "original/w.pth": b"", "x.md": b""})
    with serving({"/w": Answer(content=b"w")}) as store:
        large = f"/me/tiny/resolve/{COMMIT}/deep/w.bin"
        hub.answers[large] = Answer(status=302, headers={"Location": f"{store.url}/w?sig=SEKRIT"})
        with serving(hub.answers) as server:
            monkeypatch.setenv("HF_ENDPOINT", server.url)
            place = fetched(tmp_path, "me/tiny", revision="main", leave_out=("original/*", "*.md"))
    assert contents(place) == {"config.json": b"{}", "deep/w.bin": b"w"}
    assert {each.headers["Authorization"] for each in server.asked} == {"Bearer hf_SEKRIT"}
    [there] = store.asked
    assert "Authorization" not in there.headers
    done = json.loads((place / DONE).read_text())
    assert (done["commit"], done["revision"]) == (COMMIT, "main")


def test_one_file_of_a_repository_is_fetched_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Hub({"a.jsonl": b"a", "b.jsonl": b"b"}).answers) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        link = str(tmp_path / "v/dataset/data.jsonl")
        fetched(tmp_path, "me/tiny", revision="main", file="b.jsonl", link=link)
        assert Path(link).read_bytes() == b"b"
        assert [each.path for each in server.asked if "resolve" in each.path] == [
            f"/me/tiny/resolve/{COMMIT}/b.jsonl"
        ]
        with pytest.raises(LastingError, match=r"no c\.jsonl that is asked for; its 2 files: a\."):
            fetched(tmp_path / "2", "me/tiny", revision="main", file="c.jsonl")


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out"])
def test_a_repository_writes_nothing_outside_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with serving(Hub({name: b"x"}).answers) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        with pytest.raises(LastingError, match="does not lie below its folder"):
            fetched(tmp_path, "me/tiny")
    assert "out" not in {path.name for path in tmp_path.rglob("*")}


def test_content_that_is_not_what_the_hub_says_is_fetched_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Hub({"a": b"x"}, sha256="0" * 64).answers) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        with pytest.raises(FetchError, match="its SHA-256 is") as failed:
            fetched(tmp_path, "me/tiny")
    assert not isinstance(failed.value, LastingError)
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize(
    ("status", "token", "words"),
    [
        (401, "", "HF_TOKEN: {secret: hf, key: token}"),
        (403, "hf_x", "must have accepted the repository's terms"),
        (404, "", "no such repository or revision"),
    ],
)
def test_a_repository_that_is_closed_or_none_says_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, token: str, words: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    with serving({REVISION: Answer(status=status)}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        with pytest.raises(LastingError) as failed:
            fetched(tmp_path, "me/tiny")
    assert words in str(failed.value)


def test_a_branch_that_moves_between_two_tries_mixes_no_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit that was begun with is gone on with, and DONE names it."""
    old, new = Hub({"a": b"old", "b": b"old"}), Hub({"a": b"new", "b": b"new"}, commit="c0ffee")
    served = dict(old.answers) | {old.file("b"): Answer(status=503)}
    with serving(served) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        with pytest.raises(FetchError, match="503"):
            fetched(tmp_path, "me/tiny", revision="main")
        served.update(old.answers | new.answers)
        place = fetched(tmp_path, "me/tiny", revision="main")
        assert len(server.of(old.file("a"))) == 1
    assert contents(place) == {"a": b"old", "b": b"old"}
    assert json.loads((place / DONE).read_text())["commit"] == COMMIT


def test_of_a_commit_that_is_gone_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = Hub({"a": b"old", "b": b"old"}), Hub({"a": b"new", "b": b"new"}, commit="c0ffee")
    served = dict(old.answers) | {old.file("b"): Answer(status=503)}
    with serving(served) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        with pytest.raises(FetchError, match="503"):
            fetched(tmp_path, "me/tiny", revision="main")
        served.clear()
        served.update(new.answers)
        place = fetched(tmp_path, "me/tiny", revision="main")
    assert contents(place) == {"a": b"new", "b": b"new"}
    assert json.loads((place / DONE).read_text())["commit"] == "c0ffee"


def test_a_list_of_files_is_read_to_its_last_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a mirror repeats the hub's own name in the link to the next one."""
    hub = Hub({"a": b"1", "deep/b": b"2", "c": b"3"}, files_of_page=1)
    with serving(hub.answers) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        assert contents(fetched(tmp_path, "me/tiny")) == {"a": b"1", "deep/b": b"2", "c": b"3"}


def test_a_file_of_another_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files have no SHA-256."""
    hub = Hub({"a": b"whole"})
    hub.answers[hub.file("a")] = Answer(content=b"who")
    with serving(hub.answers) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        with pytest.raises(FetchError, match="3 bytes came, and 5 were promised"):
            fetched(tmp_path, "me/tiny")


def test_a_token_may_end_in_a_new_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a Secret that was made of a file."""
    monkeypatch.setenv("HF_TOKEN", "hf_SEKRIT\n")
    with serving(Hub({"a": b"x"}).answers) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        fetched(tmp_path, "me/tiny")
        assert {each.headers["Authorization"] for each in server.asked} == {"Bearer hf_SEKRIT"}


@pytest.mark.parametrize("token", ["hf_SEKRIT\nhf_SEKRIT", "hf SEKRIT", "hf_SEKRIT\u00e9"])
def test_a_token_that_no_header_can_have_is_said_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(LastingError, match="that no header can have") as failed:
        fetched(tmp_path, "me/tiny")
    assert "SEKRIT" not in str(failed.value)
