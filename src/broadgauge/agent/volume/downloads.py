"""How is a URL fetched whole, going on where an earlier pod was killed?

What came lies in a `.partial` file beside one that says which content it is of (the server's ETag
or date), and gets its name when it is whole.
Source: RFC 9110, 13.1.5 (If-Range), 14 (Range), 15.5.17 (416).
"""

import hashlib
import http.client
import json
import os
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broadgauge.agent.volume.telling import (
    TELL_EVERY_S,
    FetchError,
    LastingError,
    one_line,
    say,
    shown,
)

CHUNK_BYTES = 1 << 20
REACH_LIMIT_S = 60.0
"""Of a connection, and of each piece of an answer."""
AGENT = "broadgauge"
"""Some servers refuse what a library says of its own accord."""
NEVER = frozenset({400, 401, 403, 404, 405, 410, 451})
"""What a server answers that has it not, or not for us."""
MOST_ANSWER_BYTES = 64 << 20
"""Of an answer that is read as a whole: the list of a repository's files."""
MOST_BROKEN = 20
"""Connections that end early, each after some bytes, before the Job's next try."""
_NEXT_PAGE = re.compile(r'<([^<>]*)>\s*;\s*rel="?next\b')
"""Source: RFC 8288, 3."""
_HEADER_VALUE = re.compile(r"[A-Za-z]+ [!-~]+")
"""Of Authorization: how, and a token. Source: RFC 9110, 11.4."""
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(?:\d+|\*)")


class HttpStatusError(FetchError):
    """A server's answer that is no content."""

    def __init__(self, text: str, status: int, headers: Any) -> None:
        super().__init__(text)
        self.status = status
        self.content_range = str(headers.get("Content-Range", ""))
        self.challenge = str(headers.get("WWW-Authenticate", ""))
        """How it wants to be told who asks."""

    @property
    def is_lasting(self) -> bool:
        """Would it answer the same again?"""
        return self.status in NEVER or 300 <= self.status < 400


class _BrokenOffError(FetchError):
    """An answer that ended early, or did not go on."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Never to what nobody encrypts where the source is encrypted, nor to another protocol; a token
    goes to the host alone that it is for."""

    http_error_308 = urllib.request.HTTPRedirectHandler.http_error_302
    """Python 3.10 does not know it."""

    def redirect_request(  # noqa: PLR0917  as the library calls it
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        """Raises LastingError."""
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        is_less = before.scheme == "https" and after.scheme == "http"
        if after.scheme not in {"http", "https"} or is_less:
            raise LastingError(
                f"{shown(req.full_url)} leads from {before.scheme} to {after.scheme}, which is not "
                f"followed: {shown(newurl)}"
            )
        known = 307 if code == 308 else code
        found = super().redirect_request(req, fp, known, msg, headers, newurl)
        token = req.unredirected_hdrs.get("Authorization")
        if found is not None and token and before[:2] == after[:2]:
            found.add_unredirected_header("Authorization", token)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAnswer:
    """An answer that was read as a whole."""

    content: Any
    """Of its JSON."""
    sha256: str
    next_page: str
    """URL that a list goes on at; empty: it ends here."""


def read_json(url: str, authorization: str | None, accept: str | None = None) -> ReadAnswer:
    """`accept`: media types. Raises FetchError."""
    headers = {} if accept is None else {"Accept": accept}
    with _opened(url, headers, authorization) as answer:
        try:
            text = answer.read(MOST_ANSWER_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            raise FetchError(f"{shown(url)}: {one_line(error) or type(error).__name__}") from None
        following = _NEXT_PAGE.search(answer.headers.get("Link", ""))
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise FetchError(f"{shown(url)}: the answer is no JSON") from None
    return ReadAnswer(
        content=content,
        sha256=hashlib.sha256(text).hexdigest(),
        next_page=following[1] if following else "",
    )


def download(
    url: str,
    target: Path,
    partial: Path,
    *,
    authorization: str | None = None,
    sha256: str | None = None,
    size_bytes: int | None = None,
) -> bool:
    """Into `target`, unless it is there; it grows as `partial`. Is it known to be whole? A server
    that says no length ends a cut answer as a whole one. Raises FetchError and OSError."""
    if target.exists():
        return True
    is_whole = True
    partial.parent.mkdir(parents=True, exist_ok=True)
    for tries in range(MOST_BROKEN):
        had_bytes = _size_bytes(partial)
        try:
            is_whole = _go_on(url, partial, authorization)
            break
        except HttpStatusError as error:
            if error.status != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            if error.content_range == f"bytes */{had_bytes}":  # killed when all had come
                break
            partial.unlink()
        except _BrokenOffError as error:
            if _size_bytes(partial) <= had_bytes or tries == MOST_BROKEN - 1:
                raise
            say(f"{error}: going on at {_size_bytes(partial) / 1e6:,.1f} MB")
    if size_bytes is not None and (came := _size_bytes(partial)) != size_bytes:
        partial.unlink()
        raise FetchError(f"{shown(url)}: {came} bytes came, and {size_bytes} were promised")
    if sha256 is not None and (found := _sha256(partial)) != sha256:
        partial.unlink()
        raise FetchError(f"{shown(url)}: its SHA-256 is {found}, and {sha256} was promised")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial.rename(target)
    _about(partial).unlink(missing_ok=True)
    return is_whole or sha256 is not None or size_bytes is not None


def _go_on(url: str, partial: Path, authorization: str | None) -> bool:
    """Is the answer's end known? Raises FetchError and OSError."""
    had_bytes, state = _size_bytes(partial), _state(partial)
    headers = {}
    if had_bytes and state:
        headers = {"Range": f"bytes={had_bytes}-", "If-Range": state}
    with _opened(url, headers, authorization) as answer:
        begin_bytes = 0
        if answer.status == http.client.PARTIAL_CONTENT:
            part = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            begin_bytes = int(part[1]) if part else -1
            if begin_bytes != had_bytes:
                partial.unlink()
                raise FetchError(f"{shown(url)}: another part than the one asked for came")
        else:
            partial.unlink(missing_ok=True)  # a pod killed after the next line has none of the old
            _about(partial).write_text(_validator(answer.headers), encoding="utf-8")
        _receive(answer, url, partial, begin_bytes)
        return bool(answer.chunked or answer.headers.get("Content-Length"))


def _receive(answer: Any, url: str, partial: Path, begin_bytes: int) -> None:
    """Raises _BrokenOffError where it is not all, and OSError of the volume."""
    length = answer.headers.get("Content-Length") or ""
    end_bytes = begin_bytes + int(length) if length.isdecimal() else None
    told_s, at_bytes = time.monotonic(), begin_bytes
    with partial.open("r+b" if begin_bytes else "wb") as file:
        file.seek(begin_bytes)
        while True:
            try:
                piece = answer.read1(CHUNK_BYTES)  # what is there: it is kept, whatever follows
            except (OSError, http.client.HTTPException) as error:
                words = one_line(error) or type(error).__name__
                raise _BrokenOffError(f"{shown(url)}: {words}") from None
            if not piece:
                break
            file.write(piece)
            file.flush()
            at_bytes += len(piece)
            if time.monotonic() - told_s >= TELL_EVERY_S:
                told_s = time.monotonic()
                whole = "" if end_bytes is None else f" of {end_bytes / 1e6:,.0f}"
                say(f"{shown(url)}: {at_bytes / 1e6:,.0f}{whole} MB")
        file.truncate()
        os.fsync(file.fileno())
    if end_bytes is not None and at_bytes != end_bytes:
        raise _BrokenOffError(f"{shown(url)}: {at_bytes} of {end_bytes} bytes came")


def _opened(url: str, headers: Mapping[str, str], authorization: str | None) -> Any:
    """The answer, to be closed. Raises FetchError."""
    place = shown(url)
    if authorization and not _HEADER_VALUE.fullmatch(authorization):
        raise LastingError(
            f"{place} is not asked: its token or password has a blank, a line break or another "
            "character that no header can have (HF_TOKEN, REGISTRY_AUTH; it is not shown)"
        )
    try:
        asked = urllib.request.Request(url, headers={"User-Agent": AGENT, **headers})
        if authorization:
            asked.add_unredirected_header("Authorization", authorization)
        return urllib.request.build_opener(_Redirects).open(asked, timeout=REACH_LIMIT_S)
    except urllib.error.HTTPError as error:
        with error:
            words = f"{place}: {error.code} {one_line(error.reason)}"
            raise HttpStatusError(words, error.code, error.headers) from None
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise LastingError(
                f"{place}: its certificate is none that the image knows: SSL_CERT_FILE in "
                f"`kubernetes.prepare.environment` names yours ({one_line(reason)})"
            ) from None
        raise FetchError(unreachable(url, one_line(reason))) from None
    except (http.client.InvalidURL, ValueError):  # their words repeat the whole of it
        raise LastingError(
            f"{place} is no URL that can be asked for, or redirects to one that is none"
        ) from None
    except http.client.HTTPException as error:
        raise FetchError(f"{place}: {type(error).__name__}: {one_line(error)}") from None


def unreachable(url: str, reason: str) -> str:
    """What, why, and what helps."""
    server = urllib.parse.urlsplit(url)
    return (
        f"{shown(url.partition('?')[0])} can't be reached from this pod: {reason}. Let its network "
        f"reach {shown(f'{server.scheme}://{server.netloc}')}; or name in "
        "`kubernetes.prepare.environment` a proxy (HTTPS_PROXY) or a mirror of the hub "
        "(HF_ENDPOINT); or let `source` be a path in an image or on the volume"
    )


def _validator(headers: Any) -> str:
    """By which a server tells whether it still has the same; empty: nobody can go on."""
    etag = headers.get("ETag", "")
    return str(etag if etag.startswith('"') else headers.get("Last-Modified", ""))


def _about(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.state")


def _state(partial: Path) -> str:
    try:
        return _about(partial).read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while piece := content.read(CHUNK_BYTES):
            digest.update(piece)
    return digest.hexdigest()
