"""What waits in front of an S3 server, so that each request takes as long as a distant one's?

It passes requests and answers on, byte for byte, and holds back the first byte of each answer until
the set time has passed since the whole request was here: the server works meanwhile, so the wait
is the latency as long as the server is quicker. An interim answer (100 Continue) is not held back.
One thread a connection: its reads and writes leave the interpreter to others.
"""

import json
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

COUNTS_PATH = b"/.broadgauge/requests"
"""Asked for, it answers how many requests of each method it has passed on, as JSON."""
_BUFFER_BYTES = 256 * 1024
_MOST_HEAD_BYTES = 256 * 1024
_NO_BODY = (204, 304)


class PeerGone(Exception):  # noqa: N818  no error: a client hangs up when it has had enough
    """A connection ended, between two messages or within one."""


@dataclass(slots=True, kw_only=True)
class LatencyProxy:
    """Listens on one socket, in front of one server."""

    upstream: tuple[str, int]
    latency_s: float
    counts: Counter[str] = field(default_factory=Counter)

    def serve(self, listener: socket.socket) -> None:
        """Until the process ends."""
        while True:
            client, _ = listener.accept()
            threading.Thread(target=self._serve_client, args=(client,), daemon=True).start()

    def _serve_client(self, client: socket.socket) -> None:
        with client, suppress(OSError, PeerGone), socket.create_connection(self.upstream) as server:
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            asked, answered = Wire(client), Wire(server)
            while self._exchange(asked, answered):
                pass

    def _exchange(self, asked: "Wire", answered: "Wire") -> bool:
        """One request and its answer; may another follow?"""
        request = asked.read_head()
        if request.path == COUNTS_PATH:
            asked.end.sendall(_counts_answer(self.counts))
            return True
        self.counts[request.method] += 1
        answered.end.sendall(request.data)
        answer = None
        if request.expects_continue:
            answer = answered.read_head()
            if answer.status == 100:
                asked.end.sendall(answer.data)
        if answer is None or answer.status == 100:
            asked.pass_body(request, answered.end)
            due_s = time.monotonic() + self.latency_s
            answer = answered.read_head()
            while answer.status < 200:
                asked.end.sendall(answer.data)
                answer = answered.read_head()
        else:  # refused before the body: the connection can't be used again
            due_s = time.monotonic() + self.latency_s
        time.sleep(max(0.0, due_s - time.monotonic()))
        asked.end.sendall(answer.data)
        if request.method != "HEAD" and answer.status not in _NO_BODY:
            answered.pass_body(answer, asked.end)
        is_refused = request.expects_continue and answer.status >= 400
        return not (request.closes or answer.closes or is_refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageHead:
    """The first lines of a request or an answer."""

    data: bytes
    first: tuple[bytes, ...]
    fields: dict[bytes, bytes]

    @property
    def method(self) -> str:
        return self.first[0].decode("latin-1")

    @property
    def path(self) -> bytes:
        return self.first[1]

    @property
    def status(self) -> int:
        return int(self.first[1])

    @property
    def expects_continue(self) -> bool:
        return self.fields.get(b"expect", b"").lower() == b"100-continue"

    @property
    def closes(self) -> bool:
        return b"close" in self.fields.get(b"connection", b"").lower()

    @property
    def is_chunked(self) -> bool:
        return b"chunked" in self.fields.get(b"transfer-encoding", b"").lower()

    @property
    def num_body_bytes(self) -> int | None:
        """None: it does not say."""
        length = self.fields.get(b"content-length")
        return None if length is None else int(length)


@dataclass(slots=True)
class Wire:
    """One end of a connection, and what was read of it too early."""

    end: socket.socket
    rest: bytes = b""

    def read_head(self) -> MessageHead:
        """Raises PeerGone."""
        while b"\r\n\r\n" not in self.rest:
            if len(self.rest) > _MOST_HEAD_BYTES:
                raise PeerGone
            self.rest += self._read()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        pairs = (line.partition(b":") for line in lines)
        fields = {name.strip().lower(): value.strip() for name, _, value in pairs}
        return MessageHead(
            data=head + b"\r\n\r\n", first=tuple(first.split(b" ", 2)), fields=fields
        )

    def pass_body(self, head: MessageHead, to: socket.socket) -> None:
        """What comes behind this head. A request that says no length has no body, an answer that
        says none goes on to the end of its connection."""
        if head.is_chunked:
            self._pass_chunks(to)
        elif head.num_body_bytes is not None:
            self._pass(head.num_body_bytes, to)
        elif head.first[0].startswith(b"HTTP/"):
            with suppress(PeerGone):
                while True:
                    self._pass(_BUFFER_BYTES, to)

    def _pass_chunks(self, to: socket.socket) -> None:
        """Source: RFC 9112, section 7.1."""
        while True:
            line = self._pass_line(to)
            num_bytes = int(line.split(b";")[0], 16)
            if num_bytes == 0:
                break
            self._pass(num_bytes + 2, to)
        while self._pass_line(to) != b"\r\n":
            pass

    def _pass_line(self, to: socket.socket) -> bytes:
        while b"\r\n" not in self.rest:
            self.rest += self._read()
        line, _, self.rest = self.rest.partition(b"\r\n")
        to.sendall(line + b"\r\n")
        return line + b"\r\n"

    def _pass(self, num_bytes: int, to: socket.socket) -> None:
        early, self.rest = self.rest[:num_bytes], self.rest[num_bytes:]
        if early:
            to.sendall(early)
        left = num_bytes - len(early)
        buffer = memoryview(bytearray(min(_BUFFER_BYTES, left)))
        while left:
            received = self.end.recv_into(buffer[:left])
            if not received:
                raise PeerGone
            to.sendall(buffer[:received])
            left -= received

    def _read(self) -> bytes:
        data = self.end.recv(1 << 16)
        if not data:
            raise PeerGone
        return data


def _counts_answer(counts: Counter[str]) -> bytes:
    body = json.dumps(dict(counts)).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body
