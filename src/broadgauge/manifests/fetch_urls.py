"""How is a URL fetched whole, and told of without its secrets?

It lies beside fetch_to_volume.py in its Job: the standard library of Python 3.10.
"""

import http.client
import re
import shutil
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

CHUNK_BYTES = 1 << 20
REACH_LIMIT_S = 60.0
NEVER = (400, 401, 403, 404, 410)
"""What a server answers that has it not, or not for us."""
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{0,30}://"
_URL = re.compile(rf"({_SCHEME})([^/?#]*)((?:(?!{_SCHEME})[^?#])*)([?#].*)?", re.DOTALL)
"""Scheme, authority, path, the rest. A path may hold blanks by mistake, and ends at another URL."""
_HOST = re.compile(r"(?:[^\s:\[\]]*|\[[^\s\[\]]*\])(?::[0-9]*)?")
"""Source: RFC 3986, 3.2."""


class FetchError(Exception):
    """What was asked for can't be had; in words for the pod's log."""


class LastingError(FetchError):
    """Another try does not help: it is not there, or makes no sense."""


def shown(text: str) -> str:
    """Without users, passwords, queries of its URLs: others read the log and the volume."""
    return _URL.sub(_shown, text)


def _shown(url: "re.Match[str]") -> str:
    host = url[2].rpartition("@")[2]
    if not _HOST.fullmatch(host):  # a password with `/` in it looks like a port and a path
        return f"{url[1]}***"
    return f"{url[1]}{host}{url[3]}{'?***' if url[4] else ''}"


def one_line(error: object) -> str:
    return shown(" ".join(str(error).split()))


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Never to what nobody encrypts where the source is encrypted, nor to another protocol."""

    def redirect_request(  # noqa: PLR0917  as the library calls it
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        """Raises LastingError."""
        before, after = (urllib.parse.urlsplit(url).scheme for url in (req.full_url, newurl))
        if after not in ("http", "https") or (before == "https" and after == "http"):
            raise LastingError(
                f"{shown(req.full_url)} leads from {before} to {after}, which is not followed: "
                f"{shown(newurl)}"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def downloaded(url: str, target: Path) -> Path:
    """Whole, or an error: a connection that ends early is one."""
    place = shown(url)
    try:
        opener = urllib.request.build_opener(_Redirects)
        with opener.open(url, timeout=REACH_LIMIT_S) as answer:
            expected_bytes = answer.headers.get("Content-Length")
            with target.open("wb") as file:
                shutil.copyfileobj(answer, file, CHUNK_BYTES)
    except urllib.error.HTTPError as error:
        is_lasting = error.code in NEVER or 300 <= error.code < 400
        kind = LastingError if is_lasting else FetchError
        raise kind(f"{place}: {error.code} {one_line(error.reason)}") from None
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise FetchError(f"{place}: {one_line(getattr(error, 'reason', error))}") from None
    except (http.client.InvalidURL, ValueError):  # their words repeat the whole of it
        raise LastingError(
            f"{place} is no URL that can be asked for, or redirects to one that is none"
        ) from None
    except http.client.HTTPException as error:
        raise FetchError(f"{place}: {type(error).__name__}: {one_line(error)}") from None
    size_bytes = target.stat().st_size
    if (expected_bytes or "").isdecimal() and size_bytes != int(expected_bytes):
        raise FetchError(f"{place}: {size_bytes} of {expected_bytes} bytes came")
    return target
