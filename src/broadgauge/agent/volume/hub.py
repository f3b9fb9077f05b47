"""Which files has a repository of the Hugging Face hub, and how are they fetched?

By its plain HTTPS interface, so that no library of the image is needed, and each file goes on where
it was. HF_ENDPOINT names a mirror, HF_TOKEN opens what is gated.
Source: huggingface.co/docs/hub/api (`/api/models/REPOSITORY/revision/REVISION`,
`…/tree/REVISION?recursive=true` in pages), and the paths `REPOSITORY/resolve/REVISION/FILE` of
huggingface_hub, `hf_hub_url`.
"""

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from broadgauge.agent.volume.downloads import HttpStatusError, read_json
from broadgauge.agent.volume.remote_files import PartialFolders, RemoteFile, fetch_files
from broadgauge.agent.volume.telling import FetchError, LastingError, say, shown
from broadgauge.messages.prepare_order import FetchOrder

ENDPOINT = "https://huggingface.co"
MOST_PAGES = 10_000
"""Of a list of files: 1,000 files each and more."""
_GATED = (401, 403)
_GONE = (404, 410)


def fetch_repository(order: FetchOrder, room: PartialFolders) -> str:
    """Those that were asked for; the commit. An earlier try's, where it still can be asked for: its
    branch may have moved since. Raises FetchError and OSError."""
    repository = _repository(order)
    try:
        commit, files = _listed(repository, order, room.kept_version())
        room.keep_version(commit)
        say(f"{order.source} at commit {commit}")
        fetch_files(order, files, room, lambda: repository.authorization)
    except HttpStatusError as error:
        has_token = repository.authorization is not None
        raise _explained(error, order, has_token=has_token) from None
    return commit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repository:
    """Where it is asked for."""

    api: str
    base: str
    authorization: str | None

    def commit(self, revision: str) -> str:
        """Raises FetchError."""
        url = f"{self.api}/revision/{quote(revision, safe='')}"
        told = read_json(url, self.authorization).content
        commit = told.get("sha") if isinstance(told, dict) else None
        if not (isinstance(commit, str) and commit.isalnum()):
            raise FetchError(f"{shown(url)}: the answer names no commit")
        return commit

    def files(self, commit: str) -> list[RemoteFile]:
        """In pages, as many as there are: a repository may have 100,000 files and more. Raises
        FetchError."""
        place, query, found = f"{self.api}/tree/{commit}", "recursive=true", list[RemoteFile]()
        for _ in range(MOST_PAGES):
            told = read_json(f"{place}?{query}", self.authorization)
            found += self._read(told.content, place, commit)
            if not told.next_page:
                return found
            query = urlsplit(told.next_page).query  # a mirror may repeat the hub's own name here
        raise FetchError(f"{shown(place)}: its list does not end after {MOST_PAGES} pages")

    def _read(self, told: Any, place: str, commit: str) -> list[RemoteFile]:
        """Of one page. Raises FetchError."""
        try:
            return [
                RemoteFile(
                    path=str(each["path"]),
                    url=f"{self.base}/resolve/{commit}/{quote(str(each['path']))}",
                    sha256=(each.get("lfs") or {}).get("oid"),
                    size_bytes=each.get("size"),
                )
                for each in told
                if each["type"] == "file"
            ]
        except (AttributeError, KeyError, TypeError) as error:
            raise FetchError(f"{shown(place)}: the answer lists no files: {error!r}") from None


def _repository(order: FetchOrder) -> _Repository:
    endpoint = (os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")
    token = os.environ.get("HF_TOKEN", "").strip()  # a Secret's value often ends in a new line
    kind = f"{order.kind}s"
    prefix = order.source if order.kind == "model" else f"{kind}/{order.source}"
    return _Repository(
        api=f"{endpoint}/api/{kind}/{order.source}",
        base=f"{endpoint}/{prefix}",
        authorization=f"Bearer {token}" if token else None,
    )


def _listed(
    repository: _Repository, order: FetchOrder, kept: str | None
) -> tuple[str, list[RemoteFile]]:
    """The commit and its files. Raises FetchError."""
    if kept is not None:
        try:
            return kept, repository.files(kept)
        except HttpStatusError as error:
            if error.status not in _GONE:
                raise
            say(f"{order.source} has commit {kept} no more: what came of it is left")
    commit = repository.commit(order.revision or "main")
    return commit, repository.files(commit)


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
