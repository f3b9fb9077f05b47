"""Does the proxy pass all on, byte for byte, and wait where it should?"""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from broadgauge.agent.emulated.storage.latency_proxy import LatencyProxy

LATENCY_S = 0.03


class Server(BaseHTTPRequestHandler):
    """Answers with what it was sent; knows chunks, and interim answers."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/chunks":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"3\r\nabc\r\n5;x=y\r\ndefgh\r\n0\r\nTrailer: t\r\n\r\n")
            return
        self.answer(self.path.encode())

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "12345")
        self.end_headers()

    def do_PUT(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while num_bytes := int(self.rfile.readline(), 16):
                body += self.rfile.read(num_bytes)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(body)

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    """Of a proxy in front of a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    proxy = LatencyProxy(upstream=("127.0.0.1", server.server_port), latency_s=LATENCY_S)
    listener = socket.create_server(("127.0.0.1", 0))
    for work in (lambda: server.serve_forever(0.01), lambda: proxy.serve(listener)):
        threading.Thread(target=work, daemon=True).start()
    yield listener.getsockname()
    server.shutdown()
    server.server_close()


def test_bodies_of_every_kind_pass_on_one_connection(address: tuple[str, int]) -> None:
    connection = http.client.HTTPConnection(*address)
    body = bytes(range(256)) * 4000

    def ask(method: str, path: str, **more: object) -> bytes:
        connection.request(method, path, **more)  # type: ignore[arg-type]
        return connection.getresponse().read()

    assert ask("GET", "/a") == b"/a"
    first = connection.sock
    assert ask("HEAD", "/a") == b""
    assert ask("PUT", "/a", body=body) == body
    assert ask("GET", "/chunks") == b"abcdefgh"
    assert ask("PUT", "/a", body=iter([b"one", b"two"]), encode_chunked=True) == b"onetwo"
    assert ask("GET", "/b") == b"/b"
    assert json.loads(ask("GET", "/.broadgauge/requests")) == {"GET": 3, "HEAD": 1, "PUT": 2}
    assert connection.sock is first


def test_an_interim_answer_is_not_held_back(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as client:
        head = b"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        client.sendall(head)
        assert client.recv(1000).startswith(b"HTTP/1.1 100")
        sent_s = time.monotonic()
        client.sendall(b"body")
        answer = client.recv(1000)
        assert time.monotonic() - sent_s >= LATENCY_S
        while not answer.endswith(b"body"):
            answer += client.recv(1000)


def test_requests_wait_at_once_and_not_in_a_row(address: tuple[str, int]) -> None:
    """Ten begin before the first is answered: each has its own thread."""
    connections = [http.client.HTTPConnection(*address) for _ in range(10)]
    for connection in connections:
        connection.request("GET", "/a")
    assert [connection.getresponse().read() for connection in connections] == [b"/a"] * 10
