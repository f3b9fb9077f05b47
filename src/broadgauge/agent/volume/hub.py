"""Which files has a repository of the Hugging Face hub, and how are they fetched?

By its plain HTTPS interface, so that no library of the image is needed, and each file goes on where
it was. HF_ENDPOINT names a mirror, HF_TOKEN opens what is gated.
Source: huggingface.co/docs/hub/api (`/api/models/REPOSITORY/revision/REVISION`), and the paths
`REPOSITORY/resolve/REVISION/FILE` of huggingface_hub, `hf_hub_url`.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import quote

from broadgauge.agent.volume.downloads import HttpStatusError, download, read_json
from broadgauge.agent.volume.inside import path_inside
from broadgauge.agent.volume.telling import FetchError, LastingError, say, shown
from broadgauge.messages.prepare_order import FetchOrder

ENDPOINT = "https://huggingface.co"
_GATED = (401, 403)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """One of a repository's."""

    path: str
    sha256: str | None
    """None: a small file, of which the hub knows a git hash."""


def fetch_repository(order: FetchOrder, whole: Path, partials: Path) -> str:
    """Those that were asked for, into `whole`; the commit. Raises FetchError and OSError."""
    endpoint = (os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")
    token = os.environ.get("HF_TOKEN") or None
    kind = f"{order.kind}s"
    revision = quote(order.revision or "main", safe="")
    about_url = f"{endpoint}/api/{kind}/{order.source}/revision/{revision}?blobs=true"
    try:
        commit, files = _read(read_json(about_url, token), about_url)
        wanted = list(_wanted(order, files))
        say(f"{order.source} at commit {commit}: {len(wanted)} of {len(files)} files")
        prefix = order.source if order.kind == "model" else f"{kind}/{order.source}"
        for file in wanted:
            target = path_inside(whole, file.path, "the repository's file")
            url = f"{endpoint}/{prefix}/resolve/{commit}/{quote(file.path)}"
            name = hashlib.sha256(f"{commit}/{file.path}".encode()).hexdigest()
            partial = partials / f"{name}.partial"
            download(url, target, partial, token=token, sha256=file.sha256)
    except HttpStatusError as error:
        raise _explained(error, order, has_token=token is not None) from None
    return commit


def _explained(error: HttpStatusError, order: FetchOrder, *, has_token: bool) -> FetchError:
    if error.status in _GATED:
        helps = (
            "the token's account must have accepted the repository's terms on its page"
            if has_token
            else "it is gated, private or none: `kubernetes: {secrets: {HF_TOKEN: {secret: hf, "
            "key: token}}}` names the Secret with a token"
        )
        return LastingError(f"{error}: {helps}")
    if error.is_lasting:
        words = f"there is no such repository or revision ({order.revision})"
        return LastingError(f"{error}: {words}")
    return FetchError(str(error))


def _read(told: Any, url: str) -> tuple[str, list[HubFile]]:
    """Its commit and files. Raises FetchError."""
    try:
        commit = told["sha"]
        if not (isinstance(commit, str) and commit.isalnum()):
            raise ValueError(commit)
        files = [
            HubFile(path=str(each["rfilename"]), sha256=(each.get("lfs") or {}).get("sha256"))
            for each in told["siblings"]
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FetchError(f"{shown(url)}: the answer lists no files: {error!r}") from None
    return commit, files


def _wanted(order: FetchOrder, files: list[HubFile]) -> Iterator[HubFile]:
    """Raises LastingError where it has not what was asked for."""
    found = [
        each
        for each in files
        if (order.file is None or each.path == order.file)
        and not any(fnmatchcase(each.path, pattern) for pattern in order.leave_out)
    ]
    if not found:
        some = ", ".join(each.path for each in files[:10])
        raise LastingError(
            f"it has no {order.file or 'file'} that is asked for; its {len(files)} files: {some}"
        )
    yield from found
