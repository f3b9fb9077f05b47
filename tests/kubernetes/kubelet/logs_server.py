"""Who answers `kubectl logs`? An HTTPS server for all nodes, on the port that they tell.

The API server calls `https://<node address>:<port>/containerLogs/<namespace>/<pod>/<container>`.
"""

import socket
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.kubernetes.kubelet.log_reader import LogQuery, read_log

if TYPE_CHECKING:
    from tests.kubernetes.kubelet.kubelet import Kubelet


class LogsServer(ThreadingHTTPServer):
    """One thread a stream."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, kubelet: "Kubelet") -> None:
        super().__init__(("0.0.0.0", 0), _Handler)
        self.kubelet = kubelet
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*kubelet.config.certificate)
        self._streams: set[socket.socket] = set()
        self._lock = threading.Lock()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, name="logs", daemon=True).start()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Only calls from this machine to its loopback addresses."""
        return str(request.getsockname()[0]).startswith("127.")

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In the stream's own thread, so that a slow caller holds nobody up."""
        try:
            with self._context.wrap_socket(request, server_side=True) as secure:
                super().finish_request(secure, client_address)  # type: ignore[arg-type]
        except OSError:  # the caller hung up, or the stream was cut
            return

    @contextmanager
    def streaming(self, connection: socket.socket) -> Iterator[None]:
        """What is sent meanwhile can be cut."""
        with self._lock:
            self._streams.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._streams.discard(connection)

    def cut_streams(self) -> int:
        """Close every stream in mid-line, as a lost connection does; says how many."""
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            try:
                stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it has ended meanwhile
        return len(streams)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LogsServer

    def do_GET(self) -> None:
        parts = urllib.parse.urlsplit(self.path)
        words = parts.path.strip("/").split("/")
        if len(words) != 4 or words[0] != "containerLogs":
            self.send_error(404)
            return
        parameters = dict(urllib.parse.parse_qsl(parts.query))
        found = self.server.kubelet.find_log(
            (words[1], words[2]), words[3], previous=parameters.get("previous") == "true"
        )
        if isinstance(found, str):
            body = found.encode()
            self.send_response(400)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        folder, is_over = found
        query = LogQuery.parse(parameters, datetime.now(UTC))
        with self.server.streaming(self.connection):  # before anybody knows that it is open
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in read_log(folder, query, is_over):
                if piece:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: its log is not for requests."""
