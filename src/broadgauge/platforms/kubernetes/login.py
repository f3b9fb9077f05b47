"""How does a user of a kubeconfig log in? By certificate, token, token file or a login program.

Source: Kubernetes, "Authenticating", client-go credential plugins (client.authentication.k8s.io).
"""

import json
import os
import re
import subprocess
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import httpx2

from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.kubernetes.api_errors import LoginError
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, mapping, mappings, text
from broadgauge.platforms.kubernetes.kubeconfig import HINT, FoundConfig, is_url
from broadgauge.platforms.kubernetes.tls import tls_of
from broadgauge.specs.errors import InputError
from broadgauge.wording.printable import printable

LOGIN_LIMIT_S = waiting_limit_s(120.0)
"""For a login program: one may wait for a browser."""
_API = "client.authentication.k8s.io/"
_VERSIONS = tuple(f"{_API}{version}" for version in ("v1", "v1beta1", "v1alpha1"))
_TOKEN = re.compile(r"[\x21-\x7e]+")
_MOST_SHOWN = 200


class TokenAuth(httpx2.Auth):
    """A token that is fetched again where the server takes it no more."""

    def __init__(self, fetch: Callable[[], str]) -> None:
        """Raises LoginError."""
        self._fetch = fetch
        self._token = fetch()

    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Raises LoginError."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        response = yield request
        if response.status_code == 401:
            self._token = self._fetch()
            request.headers["Authorization"] = f"Bearer {self._token}"
            yield request


class NamedServer(httpx2.Auth):
    """Whose certificate has another name than its URL: `tls-server-name`."""

    def __init__(self, name: str, auth: httpx2.Auth | None) -> None:
        """`auth`: what is to be done beside."""
        self._name = name
        self._auth = auth or httpx2.Auth()

    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Raises LoginError."""
        request.extensions = {**request.extensions, "sni_hostname": self._name}
        yield from self._auth.auth_flow(request)


def open_client(found: FoundConfig, timeout: httpx2.Timeout) -> httpx2.Client:
    """Raises InputError. No server is asked; a login program is run."""
    tls = tls_of(found)
    proxy, name = (text(found.cluster.get(key)) for key in ("proxy-url", "tls-server-name"))
    if proxy is not None and not is_url(proxy):
        place = found.place("cluster", "proxy-url")
        raise InputError(f"{place}: it is no URL of http or https", hint=HINT)
    auth = _auth(found)
    try:
        return httpx2.Client(
            base_url=found.server,
            verify=tls,
            auth=auth if name is None else NamedServer(name, auth),
            timeout=timeout,
            proxy=proxy,
        )
    except (ValueError, httpx2.InvalidURL) as error:
        raise InputError(f"{found.place('cluster')}: it can't be used: {error}", hint=HINT) from (
            error
        )


def _auth(found: FoundConfig) -> httpx2.Auth | None:
    """None: a certificate, or nothing. Raises InputError."""
    user, fetch = found.user, None
    key, file, token = "exec", text(user.get("tokenFile")), text(user.get("token"))
    if file is not None:
        key, fetch = "tokenFile", partial(_token_of_file, found.folder / file)
    elif token is not None:
        key, fetch = "token", partial(_sendable, token)
    elif user.get("exec") is not None:
        fetch = partial(_token_of_program, mapping(user["exec"]), found.folder)
    elif user.get("auth-provider") is not None:
        raise InputError(
            f"{found.place('user', 'auth-provider')}: login providers are gone from Kubernetes",
            hint="a login program (`exec`) takes their place",
        )
    if fetch is None:
        name, password = text(user.get("username")), text(user.get("password"))
        return None if name is None else httpx2.BasicAuth(name, password or "")
    try:
        return TokenAuth(fetch)
    except LoginError as error:
        hint = text(mapping(user.get("exec")).get("installHint")) if key == "exec" else None
        raise InputError(f"{found.place('user', key)}: {error}", hint=hint or HINT) from None


def _sendable(token: str) -> str:
    """Raises LoginError, without the token."""
    if not _TOKEN.fullmatch(token):
        raise LoginError("this token holds a character that can't be sent, as a line break")
    return token


def _token_of_file(path: Path) -> str:
    """Raises LoginError."""
    try:
        return _sendable(path.read_text().strip())
    except UnicodeDecodeError:
        raise LoginError(f"{path} holds no text") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LoginError(f"{path} can't be read: {reason}") from error


def _token_of_program(asked: JsonMap, folder: Path) -> str:
    """Raises LoginError. What it prints is never repeated, but for its last word on stderr."""
    version, name = asked.get("apiVersion"), text(asked.get("command"))
    args, listed = asked.get("args") or [], asked.get("env") or []
    if (
        name is None
        or not isinstance(args, list)
        or not all(isinstance(each, str) for each in args)
    ):
        raise LoginError("a `command` is expected, and `args` that are texts")
    if version not in _VERSIONS:
        raise LoginError(f"its apiVersion is none of {', '.join(_VERSIONS)}")
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    variables = {str(each.get("name")): str(each.get("value")) for each in mappings(listed)}
    environment = os.environ | {"KUBERNETES_EXEC_INFO": json.dumps(info)} | variables
    program = str(folder / name) if "/" in name else name
    try:
        ended = subprocess.run(
            [program, *args],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LOGIN_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LoginError(f"`{name}` did not end in {LOGIN_LIMIT_S:g} s") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its arguments can't be passed"
        raise LoginError(f"`{name}` can't be run: {reason}") from None
    if ended.returncode != 0:
        raise LoginError(f"`{name}` ended with {ended.returncode}{_last_line(ended.stderr)}")
    return _sendable(_credential(ended.stdout, name))


def _credential(printed: bytes, name: str) -> str:
    """Raises LoginError."""
    try:
        status = mapping(mapping(json.loads(printed)).get("status"))
    except (ValueError, RecursionError):
        status = {}
    token = text(status.get("token"))
    if token is None and status.get("clientCertificateData") is not None:
        raise LoginError(f"`{name}` gives a certificate, and only tokens are taken from programs")
    if token is None:
        raise LoginError(f"`{name}` printed no ExecCredential with a token")
    return token


def _last_line(printed: bytes) -> str:
    lines = printed.decode(errors="replace").strip().splitlines()
    line = printable(lines[-1]) if lines else ""
    return f": {line[:_MOST_SHOWN]}" if line else ""
