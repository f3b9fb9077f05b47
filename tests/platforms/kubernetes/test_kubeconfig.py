"""Is a broken kubeconfig one error with file and key, and is no token or key of it ever shown?"""

import base64
import json
import shlex
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.platforms.kubernetes.fake_api import NAMESPACE, PODS, Answer, Asked, FakeApi, listed

from broadgauge.platforms.kubernetes import kubeconfig, login, resources
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.kubeconfig import SERVICE_ACCOUNT, read_config
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.specs.errors import InputError

SECRET = "SEKRIT-0123456789"
SERVER = "https://api.example.org:6443"
VERSION = "client.authentication.k8s.io/v1"


def config(
    user: Any = None, cluster: Any = None, context: Any = None, **others: Any
) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [
            {"name": "c", "context": {"cluster": "k", "user": "u"} if context is None else context}
        ],
        "clusters": [{"name": "k", "cluster": {"server": SERVER} if cluster is None else cluster}],
        "users": [{"name": "u", "user": {"token": SECRET} if user is None else user}],
    } | others


def connect(
    text: str | bytes | dict[str, Any],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    context: str | None = None,
) -> Api:
    path = folder / "config"
    plain = json.dumps(text) if isinstance(text, dict) else text
    path.write_bytes(plain if isinstance(plain, bytes) else plain.encode())
    monkeypatch.setenv("KUBECONFIG", str(path))
    return Api.connect(context)


def program(text: str, code: int = 0, **others: Any) -> dict[str, Any]:
    """A user whose login program prints this."""
    script = f"printf %s {shlex.quote(text)}; exit {code}"
    asked = {"apiVersion": VERSION, "command": "/bin/sh", "args": ["-c", script]}
    return {"exec": asked | others}


BROKEN: list[tuple[str, str | bytes | dict[str, Any]]] = [
    ("", b""),
    ("", b"- 1"),
    ("", b"7"),
    ("", b"\xff\xfe"),
    (":1:46", f"users: [{{user: {{token: {SECRET} oops: }}}}"),
    ("", f"a: !{SECRET} {{}}"),
    ("", f"? [{SECRET}]\n: 1"),
    ("", f"a: *{SECRET}"),
    ("", "a: " + "9" * 5000),
    ("", "[" * 300),
    ("contexts", config(contexts=None)),
    ("contexts", config(contexts={"c": {}})),
    ("contexts[0]", config(contexts=[SECRET])),
    ("contexts[c].context", config(context=[SECRET])),
    ("contexts[c].context.cluster", config(context={"user": "u"})),
    ("contexts[c].context.namespace", config(context={"cluster": "k", "namespace": [SECRET]})),
    ("clusters", config(clusters=None)),
    ("clusters", config(clusters=SECRET)),
    ("users", config(users=None)),
    ("users[u].user", config(user=SECRET)),
    ("users[u].user.token", config(user={"token": [SECRET]})),
    ("users[u].user.token", config(user={"token": f"{SECRET}\n"})),
    ("users[u].user.token", config(user={"token": f"{SECRET}Ì"})),
    ("users[u].user.tokenFile", config(user={"tokenFile": "none"})),
    ("users[u].user.exec", config(user=program(SECRET))),
    ("users[u].user.exec", config(user=program(json.dumps({"status": SECRET})))),
    ("users[u].user.exec", config(user=program('{"a": ' + "9" * 5000))),
    ("users[u].user.exec", config(user=program(json.dumps({"status": {"token": f"{SECRET}\n"}})))),
    ("users[u].user.exec", config(user=program(SECRET, 3))),
    ("users[u].user.exec", config(user=program("", command="/none/of/that"))),
    ("users[u].user.exec", config(user=program("", apiVersion=SECRET))),
    ("users[u].user.exec", config(user=program("", args=SECRET))),
    ("users[u].user.exec", config(user={"exec": [SECRET]})),
    ("users[u].user.auth-provider", config(user={"auth-provider": {"name": SECRET}})),
    ("users[u].user.client-key", config(user={"client-certificate-data": "AAAA"})),
    (
        "users[u].user.client-certificate-data",
        config(user={"client-certificate-data": f"{SECRET}!", "client-key-data": "AAAA"}),
    ),
    (
        "users[u].user",
        config(
            user={
                key: base64.b64encode(SECRET.encode()).decode()
                for key in ("client-certificate-data", "client-key-data")
            }
        ),
    ),
    ("users[u].user.client-key", config(user={"client-key": ".", "client-certificate": "config"})),
    (
        "clusters[k].cluster.certificate-authority-data",
        config(cluster={"server": SERVER, "certificate-authority-data": "!!"}),
    ),
    (
        "clusters[k].cluster.certificate-authority",
        config(cluster={"server": SERVER, "certificate-authority": "none.crt"}),
    ),
    (
        "clusters[k].cluster.proxy-url",
        config(cluster={"server": SERVER, "proxy-url": "socks9://x"}),
    ),
    *(
        ("clusters[k].cluster.server", config(cluster={"server": server}))
        for server in (
            "10.0.0.1:6443",
            "https://",
            "https://:6443",
            "https://a:99999999",
            "https://a:b",
            "https://[::1",
            "ftp://a",
            f"https://ada:{SECRET}@a:b",
            f"https://ada:{SECRET}@a",
            "https://a b",
        )
    ),
    ("clusters[k].cluster.server", config(cluster={})),
    ("clusters[k].cluster.server", config(cluster={"server": 7})),
    ("current-context", config(**{"current-context": None})),
    ("current-context", config(**{"current-context": [SECRET]})),
]


@pytest.mark.parametrize(("place", "text"), BROKEN)
def test_what_is_broken_is_said_with_file_and_key(
    place: str, text: str | bytes | dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError) as caught:
        connect(text, tmp_path, monkeypatch)
    message, separator = caught.value.message, "" if place[:1] in ("", ":") else ": "
    assert message.startswith(f"{tmp_path / 'config'}{separator}{place}")
    assert caught.value.hint
    assert SECRET not in str(caught.value)
    assert base64.b64encode(SECRET.encode()).decode() not in str(caught.value)
    assert message.isprintable()


def test_a_folder_and_a_file_that_is_not_there_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path))
    with pytest.raises(InputError, match="Is a directory"):
        Api.connect(None)
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a:{tmp_path}/b")
    with pytest.raises(InputError, match="there is no kubeconfig") as caught:
        Api.connect(None)
    assert "--flatten" in str(caught.value.hint)


def test_a_context_that_is_not_there_is_said_with_those_that_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="none of the name 'other'") as caught:
        connect(config(), tmp_path, monkeypatch, context="other")
    assert caught.value.hint == "known: c"


def test_what_is_not_used_may_be_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users = [{"name": "old", "user": {"token": 7}}, {"name": "u", "user": {"token": "t"}}]
    api = connect(config(users=users), tmp_path, monkeypatch)
    assert (api.server, api.context, api.default_namespace) == (SERVER, "c", "default")


def authorization(fake: FakeApi, api: Api) -> list[str | None]:
    """Of each request of a list."""
    api.list(resources.PODS, NAMESPACE)
    return [each.headers.get("Authorization") for each in fake.asked]


@pytest.mark.parametrize("user", ["token", "tokenFile", "exec", "nobody"])
def test_each_way_to_log_in_reaches_the_server(
    user: str, fake: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    fake.script("GET", PODS, listed())
    ways: dict[str, dict[str, Any]] = {
        "token": {"token": SECRET},
        "tokenFile": {"tokenFile": "token"},
        "exec": program(json.dumps({"status": {"token": SECRET}})),
        "nobody": {},
    }
    text = config(user=ways[user], cluster={"server": fake.url})
    expected = None if user == "nobody" else f"Bearer {SECRET}"
    assert authorization(fake, connect(text, tmp_path, monkeypatch)) == [expected]


def test_a_token_that_has_expired_is_fetched_again_and_then_told(
    fake: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    def answer(asked: Asked) -> Answer:
        is_new = asked.headers.get("Authorization") == "Bearer new"
        return listed() if is_new else Answer(status=401, body={"message": "Unauthorized"})

    fake.script("GET", PODS, answer)
    text = config(user={"tokenFile": "token"}, cluster={"server": fake.url})
    api = connect(text, tmp_path, monkeypatch)
    token.write_text("new")
    assert authorization(fake, api) == ["Bearer old", "Bearer new"]
    fake.script("GET", PODS, Answer(status=401, body={"message": "Unauthorized"}))
    token.write_text(f"{SECRET}\n{SECRET}")
    with pytest.raises(ApiError) as caught:
        api.list(resources.PODS, NAMESPACE)
    assert caught.value.status == 401
    assert SECRET not in str(refusal(caught.value, "looking"))


def test_a_login_program_that_does_not_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "LOGIN_LIMIT_S", 0.05)
    asked = {"apiVersion": VERSION, "command": "sleep", "args": ["100"]}
    with pytest.raises(InputError, match="`sleep` did not end in"):
        connect(config(user={"exec": asked}), tmp_path, monkeypatch)


def test_a_header_that_cannot_be_sent_is_not_quoted(fake: FakeApi) -> None:
    api = fake.api()

    class Broken(httpx2.Auth):
        def auth_flow(self, request: httpx2.Request) -> Any:
            request.headers["Authorization"] = f"Bearer {SECRET}\n"
            yield request

    api.client.auth = Broken()
    with pytest.raises(ApiError) as caught:
        api.list(resources.PODS, NAMESPACE)
    assert SECRET not in str(caught.value)
    assert not caught.value.is_passing


@pytest.fixture
def in_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pod with a service account, and a home without a kubeconfig: its folder."""
    account = tmp_path / "serviceaccount"
    account.mkdir()
    for name, content in (("token", SECRET), ("namespace", "notebooks"), ("ca.crt", "")):
        (account / name).write_text(content)
    monkeypatch.setattr(kubeconfig, "ACCOUNT_FOLDER", account)
    monkeypatch.setattr(kubeconfig, "DEFAULT_FILE", str(tmp_path / "none"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


def test_a_pod_without_a_kubeconfig_asks_its_own_cluster_also_when_it_goes_on(
    in_a_pod: Path,
) -> None:
    found = read_config(None)
    assert found.server == "https://10.0.0.1:443"
    assert found.namespace == "notebooks"
    (in_a_pod / "none").write_text(json.dumps(config()))  # a file that came later
    again = read_config(found.name)
    assert again.server == "https://10.0.0.1:443"


@pytest.mark.parametrize("is_named", [True, False])
def test_a_kubeconfig_goes_before_a_pods_service_account(
    is_named: bool, in_a_pod: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = in_a_pod / ("named" if is_named else "none")
    path.write_text(json.dumps(config()))
    if is_named:
        monkeypatch.setenv("KUBECONFIG", str(path))
    assert read_config(None).server == SERVER
    assert read_config("c").server == SERVER


def test_a_context_is_never_the_service_accounts(in_a_pod: Path) -> None:
    with pytest.raises(InputError, match="there is no kubeconfig"):
        read_config("gpu")


def test_a_run_of_a_pods_service_account_goes_on_in_a_pod_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    (tmp_path / "config").write_text(json.dumps(config()))
    with pytest.raises(InputError, match="this is no pod"):
        read_config(SERVICE_ACCOUNT)
