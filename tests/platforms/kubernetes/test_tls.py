"""Do server and user prove who they are to each other by what a kubeconfig names, and else not?"""

import base64
import http.server
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.platforms.kubernetes.test_kubeconfig import config, connect

from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.specs.errors import InputError


def pem(kind: str, text: str) -> str:
    return f"-----BEGIN {kind}-----\n{text}-----END {kind}-----\n"


KEY = pem(
    "PRIVATE KEY",
    """\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgJ3McSPkcpJeBNfra
vlSGUPiY4dFyolocbS/6cvGRxG+hRANCAATOd/+3KLeh7uUj7mMbD5vHPkJ1W5pN
6Fn7ELlZA6VL3spZzBlD1DxNnCdM4KUzdQDUwO+51CsCiXIHrV8lR8X/
""",
)
"""Of nothing but these tests."""
CERTIFICATE = pem(
    "CERTIFICATE",
    """\
MIIBqTCCAU6gAwIBAgIUFf84Iteag+2+0uLby5cmtLepW/gwCgYIKoZIzj0EAwIw
GzEZMBcGA1UEAwwQYnJvYWRnYXVnZSB0ZXN0czAgFw0yNjExMjcwODM4MDBaGA8y
MTI2MTEwMzA4MzgwMFowGzEZMBcGA1UEAwwQYnJvYWRnYXVnZSB0ZXN0czBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABM53/7cot6Hu5SPuYxsPm8c+QnVbmk3oWfsQ
uVkDpUveylnMGUPUPE2cJ0zgpTN1ANTA77nUKwKJcgetXyVHxf+jbjBsMB0GA1Ud
DgQWBBRGUDg7SqMELRmCjNg9CqEVUe84szAfBgNVHSMEGDAWgBRGUDg7SqMELRmC
jNg9CqEVUe84szAZBgNVHREEEjAQhwR/AAABgghhcGkudGVzdDAPBgNVHRMBAf8E
BTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQCS515v0X/7cOWrM4+O4iEDy9TOMNCA
br6PkhqXWiYJKwIhANYNbp/3CIHTOVf92726Od8/tiV6AlJO7RAP087b496r
""",
)
"""Signed by itself, for 127.0.0.1 and api.test, until 2126: an authority, a server and a user."""


def data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Handler(http.server.BaseHTTPRequestHandler):
    """Everybody who comes so far is told the version."""

    def do_GET(self) -> None:
        content = b'{"gitVersion": "v1"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Which lets in those whose certificate is signed by this authority, and no others."""
    file = tmp_path / "both.pem"
    file.write_text(CERTIFICATE + KEY)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(file))
    tls.load_cert_chain(file)
    tls.verify_mode = ssl.CERT_REQUIRED
    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.socket = tls.wrap_socket(listening.socket, server_side=True)
    thread = threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{listening.server_address[1]}"
    listening.shutdown()
    listening.server_close()
    thread.join()


INLINE = {"client-certificate-data": data(CERTIFICATE), "client-key-data": data(KEY)}
OF_FILES = {"client-certificate": "user.crt", "client-key": "user.key"}
AUTHORITY = {"certificate-authority-data": data(CERTIFICATE)}
NOT_CHECKED = {"insecure-skip-tls-verify": True}


@pytest.fixture
def asking(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "user.crt").write_text(CERTIFICATE)
    (tmp_path / "user.key").write_text(KEY)

    def connected(user: dict[str, Any], cluster: dict[str, Any]) -> Api:
        cluster = {"server": server, **cluster}
        return connect(config(user=user, cluster=cluster), tmp_path, monkeypatch)

    return connected


@pytest.mark.parametrize("user", [INLINE, OF_FILES])
@pytest.mark.parametrize(
    "cluster",
    [
        AUTHORITY,
        {"certificate-authority": "user.crt"},
        AUTHORITY | {"tls-server-name": "api.test"},
        NOT_CHECKED,
    ],
)
def test_each_proves_who_it_is(
    asking: Any, user: dict[str, Any], cluster: dict[str, Any], tmp_path: Path
) -> None:
    before = set(tmp_path.iterdir())
    assert asking(user, cluster).read("/version") == {"gitVersion": "v1"}
    assert set(tmp_path.iterdir()) <= before | {tmp_path / "config"}


@pytest.mark.parametrize(
    ("user", "cluster", "words"),
    [
        (INLINE, {}, "CERTIFICATE_VERIFY_FAILED"),
        (INLINE, AUTHORITY | {"tls-server-name": "other.test"}, "CERTIFICATE_VERIFY_FAILED"),
        ({}, AUTHORITY, "https:"),
    ],
)
def test_who_can_not_prove_it_is_an_error(
    asking: Any, user: dict[str, Any], cluster: dict[str, Any], words: str
) -> None:
    with pytest.raises(ApiError, match=words) as caught:
        asking(user, cluster).read("/version")
    assert caught.value.status is None


def test_an_authority_that_would_not_be_asked_is_refused(asking: Any) -> None:
    with pytest.raises(InputError, match="insecure-skip-tls-verify: it names an authority, too"):
        asking(INLINE, AUTHORITY | NOT_CHECKED)


def test_a_key_with_a_passphrase_is_refused(asking: Any) -> None:
    locked = pem("ENCRYPTED PRIVATE KEY", "AAAA\n")
    with pytest.raises(InputError, match="client-key: a key with a passphrase"):
        asking(INLINE | {"client-key-data": data(locked)}, AUTHORITY)
