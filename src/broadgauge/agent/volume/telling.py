"""What does a pod say that fills a volume, or waits for it? Never what a URL or variable hides."""

import json
import os
import re
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from broadgauge.messages.prepare_order import PREPARE_ORDER, VARIABLE, PrepareOrder

ALL_IS_THERE, FAILED, LASTING = 0, 1, 2
"""Exit codes: after FAILED the Job tries again, after LASTING it does not."""
TELL_EVERY_S = 30.0
_MOST_ERROR_CHARACTERS = 2000
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{0,30}://"
_URL = re.compile(rf"({_SCHEME})([^/?#]*)((?:(?!{_SCHEME})[^?#])*)([?#].*)?", re.DOTALL)
"""Scheme, authority, path, the rest. A path may hold blanks by mistake, and ends at another URL."""
_HOST = re.compile(r"(?:[^\s:\[\]]*|\[[^\s\[\]]*\])(?::[0-9]*)?")
"""Source: RFC 3986, 3.2."""


class FetchError(Exception):
    """What was asked for can't be had now; in words for the pod's log."""


class LastingError(FetchError):
    """Another try does not help: it is not there, makes no sense, or somebody has to act."""


def read_order() -> PrepareOrder:
    """Raises LastingError."""
    try:
        return PREPARE_ORDER(json.loads(os.environ[VARIABLE]))
    except (KeyError, ValueError) as error:
        raise LastingError(f"{VARIABLE} says nothing usable: {error!r}") from None


def end_when_told() -> None:
    """The first process of a container is not ended by a signal that it does not take."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    sys.exit(128 + number)


def say(text: str) -> None:
    """A line of the pod's log, in UTF-8 whatever the image's locale is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(f"broadgauge: {text}\n".encode(errors="replace"))
    sys.stdout.buffer.flush()


def shown(text: str) -> str:
    """Without users, passwords, queries of its URLs: others read the log and the volume."""
    return _URL.sub(_shown, text)


def _shown(url: re.Match[str]) -> str:
    host = url[2].rpartition("@")[2]
    if not _HOST.fullmatch(host):  # a password with `/` in it looks like a port and a path
        return f"{url[1]}***"
    return f"{url[1]}{host}{url[3]}{'?***' if url[4] else ''}"


def one_line(error: object) -> str:
    return shown(" ".join(str(error).split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Of a try, for the pods that wait."""

    status: int
    """The exit code."""
    text: str


def keep_failure(order: PrepareOrder, failure: Failure | None) -> None:
    """None: it is over. As far as the volume allows."""
    path = _error_file(order)
    with suppress(OSError):
        if failure is None:
            path.unlink(missing_ok=True)
        else:
            text = failure.text[:_MOST_ERROR_CHARACTERS]
            growing = path.with_name(f"{path.name}.partial")
            growing.write_text(json.dumps({"status": failure.status, "text": text}))
            growing.replace(path)


def last_failure(order: PrepareOrder) -> Failure | None:
    """None: there is none, as far as this is known."""
    try:
        told = json.loads(_error_file(order).read_text(encoding="utf-8"))
        return Failure(status=int(told["status"]), text=str(told["text"]))
    except (OSError, KeyError, TypeError, ValueError):
        return None


def _error_file(order: PrepareOrder) -> Path:
    return Path(order.root) / f".{order.maker}.error"


def who() -> str:
    """Which user is this, in words for a message on rights?"""
    groups = ", ".join(map(str, sorted({os.getegid(), *os.getgroups()})))
    return f"user {os.geteuid()} (groups {groups})"
