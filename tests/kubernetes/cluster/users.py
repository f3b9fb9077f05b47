"""Who may speak to the API server: tokens that can be given and revoked while it runs.

The API server asks this webhook about each bearer token that it does not know. Source: TokenReview,
API group authentication.k8s.io/v1 of Kubernetes.
"""

import json
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A name that roles are bound to, and its groups."""

    name: str
    groups: tuple[str, ...]
    token: str


class Users:
    """Answers the API server's questions about tokens, on a port of 127.0.0.1."""

    def __init__(self) -> None:
        self._by_token: dict[str, User] = {}
        users = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length_bytes = int(self.headers["Content-Length"])
                review = users.review(json.loads(self.rfile.read(length_bytes)))
                body = json.dumps(review).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Tokens belong in no log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def add(self, name: str, groups: Sequence[str] = ()) -> User:
        """One more token for this name."""
        user = User(name=name, groups=tuple(groups), token=secrets.token_hex(16))
        self._by_token[user.token] = user
        return user

    def revoke(self, name: str) -> None:
        """All tokens of this name."""
        for user in [each for each in self._by_token.values() if each.name == name]:
            del self._by_token[user.token]

    def review(self, review: dict[str, Any]) -> dict[str, Any]:
        """A TokenReview with its status."""
        user = self._by_token.get(review["spec"]["token"])
        status: dict[str, Any] = {"authenticated": user is not None}
        if user is not None:
            status["user"] = {"username": user.name, "uid": user.name, "groups": user.groups}
        return {"apiVersion": review["apiVersion"], "kind": "TokenReview", "status": status}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
