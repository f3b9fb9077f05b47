"""Which files has a repository of the Hugging Face hub, and how are they fetched?

By its plain HTTPS interface, so that no library of the image is needed, and each file goes on where
it was. HF_ENDPOINT names a mirror, HF_TOKEN opens what is gated.
Source: huggingface.co/docs/hub/api (`/api/models/REPOSITORY/revision/REVISION`), and the paths
`REPOSITORY/resolve/REVISION/FILE` of huggingface_hub, `hf_hub_url`.
"""

import os
from typing import Any
from urllib.parse import quote

from broadgauge.agent.volume.downloads import HttpStatusError, read_json
from broadgauge.agent.volume.remote_files import PartialFolders, RemoteFile, fetch_files
from broadgauge.agent.volume.telling import FetchError, LastingError, say, shown
from broadgauge.messages.prepare_order import FetchOrder

ENDPOINT = "https://huggingface.co"
_GATED = (401, 403)


def fetch_repository(order: FetchOrder, room: PartialFolders) -> str:
    """Those that were asked for; the commit. Raises FetchError and OSError."""
    endpoint = (os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")
    token = os.environ.get("HF_TOKEN")
    authorization = f"Bearer {token}" if token else None
    kind = f"{order.kind}s"
    revision = quote(order.revision or "main", safe="")
    url = f"{endpoint}/api/{kind}/{order.source}/revision/{revision}?blobs=true"
    prefix = order.source if order.kind == "model" else f"{kind}/{order.source}"
    try:
        commit, files = _read(read_json(url, authorization), url, f"{endpoint}/{prefix}")
        say(f"{order.source} at commit {commit}")
        fetch_files(order, files, room, lambda: authorization)
    except HttpStatusError as error:
        raise _explained(error, order, has_token=authorization is not None) from None
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


def _read(told: Any, url: str, base: str) -> tuple[str, list[RemoteFile]]:
    """Its commit and files. Raises FetchError."""
    try:
        commit = told["sha"]
        if not (isinstance(commit, str) and commit.isalnum()):
            raise ValueError(commit)
        files = [
            RemoteFile(
                path=str(each["rfilename"]),
                url=f"{base}/resolve/{commit}/{quote(str(each['rfilename']))}",
                sha256=(each.get("lfs") or {}).get("sha256"),
            )
            for each in told["siblings"]
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FetchError(f"{shown(url)}: the answer lists no files: {error!r}") from None
    return commit, files
