"""An API server whose answers are a test's: also those that a real one gives seldom."""

import json
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
from tests.timeouts import HANG_S

from broadgauge.platforms.kubernetes.api import Api

NAMESPACE = "training"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Made once, and not used: it is plain HTTP."""
HOLD_LIMIT_S = HANG_S
"""For a stream whose test never ends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, as it came."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is sent back."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    stream: Sequence[bytes | threading.Event] | None = None
    """Pieces in turn instead of a body; an event is waited for."""
    is_cut: bool = False
    """The connection breaks after the last piece, instead of ending well."""


def refused(status: int, reason: str, message: str = "as the test has it") -> Answer:
    """As an API server says no."""
    body = {"kind": "Status", "code": status, "reason": reason, "message": message}
    return Answer(status=status, body=body)


def events(*found: tuple[str, dict[str, Any]], is_cut: bool = False) -> Answer:
    """A watch that tells these and ends."""
    return Answer(stream=[event_line(kind, body) for kind, body in found], is_cut=is_cut)


def event_line(kind: str, body: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"


def listed(*items: dict[str, Any], version: str = "1") -> Answer:
    """A list at this version."""
    return Answer(body={"metadata": {"resourceVersion": version}, "items": list(items)})


def held(*before: tuple[str, dict[str, Any]]) -> tuple[Answer, threading.Event]:
    """A watch that tells these and stays open until it is let go."""
    end = threading.Event()
    return Answer(stream=[*(event_line(*each) for each in before), end]), end


def pod(name: str, version: str = "1", phase: str = "Running", **labels: str) -> dict[str, Any]:
    """Placed, and in this phase."""
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": version, "labels": labels},
        "spec": {"nodeName": "node-a"},
        "status": {"phase": phase},
    }


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked may break off; all else is a fault of this file."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


Script = Answer | Callable[[Asked], Answer]


class FakeApi:
    """Answers by method and path; one of several in turn, the last for ever."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._scripts: dict[tuple[str, str], list[Script]] = {}
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _serve(self) -> None:
                length_bytes = int(self.headers.get("Content-Length", 0))
                content = self.rfile.read(length_bytes)
                parts = urlsplit(self.path)
                asked = Asked(
                    method=self.command,
                    path=parts.path,
                    query=dict(parse_qsl(parts.query)),
                    body=json.loads(content) if content else None,
                    headers=dict(self.headers),
                )
                fake._send(self, fake._next(asked))

            do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815  http.server looks for these

            def log_message(self, format: str, *args: Any) -> None:
                """The test has `asked`."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    def script(self, method: str, path: str, *answers: Script) -> None:
        """Instead of what was scripted for it before; a watch is of method WATCH."""
        self._scripts[method, path] = list(answers)

    def api(self) -> Api:
        """A client of it, without the user's kubeconfig."""
        client = httpx2.Client(base_url=self.url, timeout=HANG_S, trust_env=False, verify=_TLS)
        return Api(client, self.url, None, NAMESPACE)

    def count(self, method: str, path: str) -> int:
        """Of requests so far."""
        return len([each for each in self.asked if _key(each) == (method, path)])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _next(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            scripts = self._scripts.get(_key(asked))
            if not scripts:
                return refused(404, "NotFound", f"{asked.path} not found")
            script = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        return script(asked) if callable(script) else script

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        if answer.stream is None:
            raw = isinstance(answer.body, bytes)
            content = answer.body if raw else json.dumps(answer.body or {}).encode()
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)
            return
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for piece in answer.stream:
            if isinstance(piece, threading.Event):
                piece.wait(HOLD_LIMIT_S)
                continue
            try:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            except OSError:  # whoever asked is gone
                break
        if answer.is_cut:
            handler.close_connection = True
            return
        handler.wfile.write(b"0\r\n\r\n")


@dataclass(slots=True)
class FakeTime:
    """For a module of the product, instead of `time`: it passes where the product sleeps."""

    now_s: float = 0.0
    slept_s: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, time_s: float) -> None:
        self.slept_s.append(time_s)
        self.now_s += time_s


def _key(asked: Asked) -> tuple[str, str]:
    is_watch = asked.query.get("watch") == "true"
    return ("WATCH" if is_watch else asked.method), asked.path


@contextmanager
def fake_api() -> Iterator[FakeApi]:
    """Until the test is over."""
    fake = FakeApi()
    try:
        yield fake
    finally:
        fake.close()
