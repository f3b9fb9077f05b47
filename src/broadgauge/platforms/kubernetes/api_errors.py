"""What goes wrong between the tool and an API server? One type of error, however it comes about.

No message of it holds credentials.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from broadgauge.platforms.kubernetes.json_shapes import JsonMap, mapping, mappings, text, whole
from broadgauge.wording.printable import printable

PASSING = frozenset({429, 500, 502, 503, 504})
"""A server that is busy or coming up: asked again for a while."""
MALFORMED = "Malformed"
"""Reason of an answer that is none of an API server: a proxy's page, half an object."""
_MOST_SHOWN = 80
"""Of an answer that is none: enough to know a login page by."""


class LoginError(Exception):
    """No token can be had: of a file or a login program. Holds no credentials."""


class ApiError(Exception):
    """A server's refusal, or none that answers. Holds no credentials."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None,
        reason: str = "",
        verb: str,
        what: str,
        retry_after_s: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        """Of HTTP; None: no server answered."""
        self.reason = reason
        """The server's own word: `Forbidden`, `AlreadyExists`, `Expired`."""
        self.verb = verb
        self.what = what
        """`pods in namespace training`."""
        self.retry_after_s = retry_after_s
        """How long a server that is busy wants to be left alone; 0: it does not say."""
        self.is_early = False
        """Of a 403: may the server not have read its roles yet? See api_rights.py."""

    @property
    def is_passing(self) -> bool:
        """Is it worth to ask again?"""
        return self.status is None or self.status in PASSING or self.is_early or self._was_crossed

    @property
    def _was_crossed(self) -> bool:
        """Did somebody else change a quota just when this was to be counted?

        Source: kubernetes/kubernetes#67761. What is there already is another reason,
        AlreadyExists; a changed or deleted object's conflict is its caller's matter.
        """
        return self.status == 409 and self.reason == "Conflict" and self.verb == "create"


def is_missing(error: ApiError) -> bool:
    """Is it that there is no such object, or kind?"""
    return error.status == 404


def malformed(why: str, verb: str, what: str) -> ApiError:
    """Passing: a proxy that comes up speaks for a while of other things."""
    return ApiError(why, status=None, reason=MALFORMED, verb=verb, what=what)


@contextmanager
def told(verb: str, what: str, server: str) -> Iterator[None]:
    """What goes wrong on the way is an ApiError, too."""
    try:
        yield
    except httpx2.LocalProtocolError as error:  # its message may quote a header
        words = "the request can't be sent: a header of it is not valid"
        raise ApiError(words, status=401, verb=verb, what=what) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
        words = f"{server}: {str(error) or type(error).__name__}"
        raise ApiError(words, status=None, verb=verb, what=what) from error
    except LoginError as error:
        raise ApiError(str(error), status=401, verb=verb, what=what) from error


def decoded(content: bytes | str, verb: str, what: str) -> JsonMap:
    """The object of an answer. Raises ApiError."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise malformed(f"no JSON: {_shown(content)}", verb, what) from error
    if not isinstance(found, dict):
        raise malformed(f"no object: {_shown(content)}", verb, what)
    return found


def check_object(found: JsonMap, verb: str, what: str) -> JsonMap:
    """Has it a name? Raises ApiError."""
    if text(mapping(found.get("metadata")).get("name")) is None:
        raise malformed("an object without a name", verb, what)
    return found


def check_list(found: JsonMap, verb: str, what: str) -> JsonMap:
    """Is each of its items an object with a name? Raises ApiError."""
    items = found.get("items")
    if not isinstance(items, list) or len(mappings(items)) != len(items):
        raise malformed("a list without objects as `items`", verb, what)
    for each in items:
        check_object(each, verb, what)
    return found


def version_of(found: JsonMap, verb: str, what: str) -> str:
    """From which a watch can go on. Raises ApiError."""
    version = text(mapping(found.get("metadata")).get("resourceVersion"))
    if version is None:
        raise malformed("an answer without a version", verb, what)
    return version


def event_of(line: str, what: str) -> tuple[str, JsonMap]:
    """Of a watch. Raises ApiError: the server's own, and where it is no event."""
    found = decoded(line, "watch", what)
    kind, body = found.get("type"), found.get("object")
    if not isinstance(kind, str) or not isinstance(body, dict):
        raise malformed(f"no event: {_shown(line)}", "watch", what)
    if kind == "ERROR":
        raise ApiError(
            printable(str(body.get("message"))),
            status=whole(body.get("code")),
            reason=str(body.get("reason", "")),
            verb="watch",
            what=what,
        )
    version_of(body, "watch", what)
    return kind, body if kind == "BOOKMARK" else check_object(body, "watch", what)


def check_answer(answer: httpx2.Response, verb: str, what: str) -> None:
    """Raises ApiError for whatever is no yes."""
    if answer.status_code < 300:
        return
    body: dict[str, Any] = {}
    try:
        body = mapping(json.loads(answer.content))
    except (ValueError, RecursionError):
        message = _shown(answer.content) if answer.content else ""
    else:
        message = printable(str(body.get("message") or "")) or _shown(answer.content)
    raise ApiError(
        message or answer.reason_phrase,
        status=answer.status_code,
        reason=str(body.get("reason") or ""),
        verb=verb,
        what=what,
        retry_after_s=_seconds(answer.headers.get("Retry-After")),
    )


def _shown(content: bytes | str) -> str:
    """How it begins, on one line that a terminal can show."""
    start = content[:_MOST_SHOWN]
    words = start.decode(errors="replace") if isinstance(start, bytes) else start
    return printable(words)


def _seconds(header: str | None) -> float:
    """Of the header; API servers write whole seconds. Source: RFC 9110, section 10.2.3."""
    is_number = header is not None and header.isdecimal() and len(header) < 10
    return float(header) if header is not None and is_number else 0.0
