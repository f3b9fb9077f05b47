"""Proves how a model of a registry's is fetched: who asks, which files, each by its digest."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agent.volume.content_server import Answer, ContentServer, serving
from tests.agent.volume.pods import fetch_order

from broadgauge.agent.volume.fetching import fetch
from broadgauge.agent.volume.pull_secret import credentials
from broadgauge.agent.volume.registry import TITLE, UNPACK
from broadgauge.agent.volume.telling import FetchError, LastingError
from broadgauge.messages.prepare_order import DONE, PrepareOrder

FILES = {"config.json": b"{}", "model-1.safetensors": b"weights", "README.md": b"text"}
MANIFEST = "/v2/rhelai1/tiny/manifests/1.5"
FAR = 'Bearer realm="http://far.example/t"'


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGISTRY_AUTH", raising=False)


def blob(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def manifest(files: Mapping[str, bytes]) -> bytes:
    layers = [{"digest": blob(data), "annotations": {TITLE: name}} for name, data in files.items()]
    return json.dumps({"schemaVersion": 2, "layers": layers}).encode()


@contextmanager
def registry(
    files: Mapping[str, bytes] = FILES, token: str | None = None, challenge: str = ""
) -> Iterator[ContentServer]:
    """Of one model; `token`: what it asks for."""
    answers = {MANIFEST: Answer(content=manifest(files))}
    for data in files.values():
        answers[f"/v2/rhelai1/tiny/blobs/{blob(data)}"] = Answer(content=data)
    for answer in answers.values():
        answer.asks_for = token
        answer.headers = {"WWW-Authenticate": challenge} if challenge else {}
    with serving(answers) as server:
        yield server


def fetched(folder: Path, server: ContentServer, version: str = ":1.5", **more: Any) -> Path:
    """The folder that it is in. Raises FetchError."""
    host = server.url.removeprefix("http://")
    part = fetch_order(f"oci://{host}/rhelai1/tiny{version}", **more)
    root = folder / "v/broadgauge"
    fetch(PrepareOrder(root=str(root), maker="it", fetched=(part,)), part)
    return root / "model-x"


def test_the_layers_of_a_model_are_its_files(tmp_path: Path) -> None:
    with registry() as server:
        place = fetched(tmp_path, server, leave_out=("*.md",))
    found = {path.name: path.read_bytes() for path in place.iterdir() if path.name != DONE}
    assert found == {name: data for name, data in FILES.items() if name != "README.md"}
    assert "application/vnd.oci.image.manifest.v1+json" in server.asked[0].headers["Accept"]


def test_a_registry_that_asks_is_told_by_the_pull_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token for each file, since it lives for minutes."""
    login = Answer(content=b'{"token": "T"}', asks_for="Basic dTpw")
    with serving({"/token": login}) as realm:
        challenge = f'Bearer realm="{realm.url}/token",service="here",scope="repository:x:pull"'
        with registry(token="Bearer T", challenge=challenge) as server:
            host = server.url.removeprefix("http://")
            secret = {"auths": {host: {"auth": "dTpw"}}}
            monkeypatch.setenv("REGISTRY_AUTH", json.dumps(secret))
            place = fetched(tmp_path, server)
    assert (place / "config.json").read_bytes() == b"{}"
    assert realm.asked[0].path == "/token?service=here&scope=repository%3Ax%3Apull"
    assert len(realm.asked) == 1 + len(FILES)


@pytest.mark.parametrize(
    ("challenge", "words"),
    [("", "by TLS"), (FAR, "by TLS"), ('Basic realm="x"', "REGISTRY_AUTH")],
)
def test_a_closed_registry_says_what_helps(tmp_path: Path, challenge: str, words: str) -> None:
    """And nobody is told a password without TLS."""
    closed = registry(token="Bearer T", challenge=challenge)
    with closed as server, pytest.raises(LastingError, match=words):
        fetched(tmp_path, server)


def test_a_secret_that_is_none_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_AUTH", "SEKRIT")
    closed, words = registry(token="Bearer T", challenge="Basic"), "no JSON of a pull Secret"
    with closed as server, pytest.raises(LastingError, match=words) as failed:
        fetched(tmp_path, server)
    assert "SEKRIT" not in str(failed.value)


def test_an_image_is_no_model(tmp_path: Path) -> None:
    told = json.dumps({"layers": [{"digest": blob(b"x")}]}).encode()
    answers, words = {MANIFEST: Answer(content=told)}, "is an image and no artifact of files"
    with serving(answers) as server, pytest.raises(LastingError, match=words):
        fetched(tmp_path, server)


def test_an_index_leads_to_its_first_manifest(tmp_path: Path) -> None:
    content = manifest({"a": b"one"})
    index = json.dumps({"manifests": [{"digest": blob(content)}]}).encode()
    answers = {
        MANIFEST: Answer(content=index),
        f"/v2/rhelai1/tiny/manifests/{blob(content)}": Answer(content=content),
        f"/v2/rhelai1/tiny/blobs/{blob(b'one')}": Answer(content=b"one"),
    }
    with serving(answers) as server:
        assert (fetched(tmp_path, server) / "a").read_bytes() == b"one"


def test_content_of_another_digest_is_refused(tmp_path: Path) -> None:
    answers = {
        MANIFEST: Answer(content=manifest({"a": b"one"})),
        f"/v2/rhelai1/tiny/blobs/{blob(b'one')}": Answer(content=b"two"),
    }
    with serving(answers) as server, pytest.raises(FetchError, match="was promised"):
        fetched(tmp_path, server)


@pytest.mark.parametrize("name", ["../out", "/tmp/out"])
def test_a_title_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    words = "does not lie below its folder"
    with registry({name: b"x"}) as server, pytest.raises(LastingError, match=words):
        fetched(tmp_path, server)
    assert "out" not in {path.name for path in tmp_path.rglob("*")}


def test_a_model_that_is_not_there_is_said(tmp_path: Path) -> None:
    with registry() as server, pytest.raises(LastingError, match="there is no such model"):
        fetched(tmp_path, server, version=":2")


def test_a_tag_that_moves_between_two_tries_mixes_no_models(tmp_path: Path) -> None:
    """The manifest that was begun with is gone on with, and DONE names it."""
    old, new = ({"a": text, "b": text + b"!"} for text in (b"old", b"new"))
    blobs = {
        f"/v2/rhelai1/tiny/blobs/{blob(data)}": Answer(content=data)
        for data in [*old.values(), *new.values()]
    }
    second = f"/v2/rhelai1/tiny/blobs/{blob(old['b'])}"
    begun = f"/v2/rhelai1/tiny/manifests/{blob(manifest(old))}"
    served = {**blobs, MANIFEST: Answer(content=manifest(old)), second: Answer(status=503)}
    with serving(served) as server:
        with pytest.raises(FetchError, match="503"):
            fetched(tmp_path, server)
        served |= {**blobs, MANIFEST: Answer(content=manifest(new))}
        served |= {begun: Answer(content=manifest(old))}
        place = fetched(tmp_path, server)
    assert [(place / name).read_bytes() for name in "ab"] == [b"old", b"old!"]
    assert json.loads((place / DONE).read_text())["digest"] == blob(manifest(old))


def test_another_manifest_than_the_digest_says_is_refused(tmp_path: Path) -> None:
    digest, other = blob(manifest(FILES)), manifest({"a": b"other"})
    answers = {f"/v2/rhelai1/tiny/manifests/{digest}": Answer(content=other)}
    with serving(answers) as server, pytest.raises(FetchError, match=f"than {digest} came"):
        fetched(tmp_path, server, version=f"@{digest}")


@pytest.mark.parametrize(
    "auths",
    [
        {"https://HOST": {"auth": "dTpw\n"}},
        {"https://HOST/v1/": {"auth": "dTpw"}},
        {"HOST": {"auth": "b3RoZXI="}, "HOST/rhelai1": {"auth": "dTpw"}},
        {"HOST/rhelai": {"auth": "b3RoZXI="}, "HOST": {"username": "u", "password": "p"}},
    ],
)
def test_a_pull_secret_may_name_the_registry_in_any_of_its_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, auths: dict[str, dict[str, str]]
) -> None:
    """The longest path that fits counts."""
    with registry(token="Basic dTpw", challenge='Basic realm="x"') as server:
        host = server.url.removeprefix("http://")
        told = {key.replace("HOST", host): each for key, each in auths.items()}
        monkeypatch.setenv("REGISTRY_AUTH", json.dumps({"auths": told}))
        assert (fetched(tmp_path, server) / "config.json").read_bytes() == b"{}"


@pytest.mark.parametrize("host", ["docker.io", "index.docker.io"])
def test_a_registry_of_several_names_is_one(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    told = {"auths": {"https://index.docker.io/v1/": {"auth": "dTpw"}}}
    monkeypatch.setenv("REGISTRY_AUTH", json.dumps(told))
    assert credentials(host, "me/tiny") == "dTpw"


def test_a_layer_that_is_a_packed_folder_is_refused_and_said(tmp_path: Path) -> None:
    packed = {"digest": blob(b"x"), "annotations": {TITLE: "weights", UNPACK: "true"}}
    answers = {MANIFEST: Answer(content=json.dumps({"layers": [packed]}).encode())}
    words = "'weights' is a folder that was packed"
    with serving(answers) as server, pytest.raises(LastingError, match=words):
        fetched(tmp_path, server)
