"""A server of a few files, as the hub and others are: ranges, ETags, redirects, and a line that may
break or be held at any byte."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LIMIT_S = 300.0


@dataclass(kw_only=True)
class Answer:
    """To one path."""

    content: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    etag: str = '"1"'
    """Empty: it has none."""
    has_length: bool = True
    breaks_at: int | None = None
    """The first answer ends after so many bytes."""
    holds_at: int | None = None
    """The first answer stops after so many bytes, until `go_on` is set."""
    asks_for: str | None = None
    """This Authorization, else 401 with `headers`' WWW-Authenticate."""
    sent: threading.Event = field(default_factory=threading.Event)
    """All that comes before the hold has been written."""
    go_on: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What came."""

    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ContentServer:
    """While it runs."""

    url: str
    asked: list[Asked]

    def of(self, path: str) -> list[Asked]:
        """In order."""
        return [each for each in self.asked if each.path.partition("?")[0] == path]


@contextmanager
def serving(answers: Mapping[str, Answer]) -> Iterator[ContentServer]:
    """Of these paths, with their queries where one needs it; any other is 404."""
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(Asked(path=self.path, headers=dict(self.headers)))
            path = self.path.partition("?")[0]
            number = sum(each.path.partition("?")[0] == path for each in asked)
            answer = answers.get(self.path) or answers.get(path, Answer(status=404))
            try:
                self._send(answer, is_first=number == 1)
            except ConnectionError:
                return

        def _send(self, answer: Answer, *, is_first: bool) -> None:
            if answer.asks_for not in (None, self.headers.get("Authorization")):
                answer = Answer(status=401, headers=answer.headers)
            content, begin = answer.content, 0
            wanted = self.headers.get("Range")
            if wanted and self.headers.get("If-Range") == answer.etag:
                begin = int(wanted.removeprefix("bytes=").rstrip("-"))
            if begin and begin >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if begin else answer.status)
            if begin:
                last = len(content) - 1
                self.send_header("Content-Range", f"bytes {begin}-{last}/{len(content)}")
            if answer.etag:
                self.send_header("ETag", answer.etag)
            length = {"Content-Length": str(len(content) - begin)} if answer.has_length else {}
            for name, value in {**length, **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            end = answer.breaks_at if is_first else None
            held = answer.holds_at if is_first else None
            self.wfile.write(content[begin : held if held is not None else end])
            if held is not None:
                self.wfile.flush()
                answer.sent.set()
                assert answer.go_on.wait(LIMIT_S)
                self.wfile.write(content[held:])

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield ContentServer(url=f"http://127.0.0.1:{server.server_address[1]}", asked=asked)
        for answer in answers.values():
            answer.go_on.set()
        server.shutdown()
        thread.join()
