"""Which files has a model in a registry of containers, and how are they fetched?

RHEL AI's models are there and nowhere else: an artifact whose layers are its files, each with its
name as a title. `pull_secret` says who it is, where the registry asks.
Source: OCI distribution specification 1.1, "Pulling manifests" and "Pulling blobs"; OCI image
specification 1.1, annotations (`org.opencontainers.image.title`); distribution, "Token
Authentication Specification"; ORAS, annotation `io.deis.oras.content.unpack`.
"""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from broadgauge.agent.volume.downloads import HttpStatusError, ReadAnswer, read_json
from broadgauge.agent.volume.pull_secret import DOCKER_HUB, HINT, credentials
from broadgauge.agent.volume.remote_files import PartialFolders, RemoteFile, fetch_files
from broadgauge.agent.volume.telling import FetchError, LastingError, say, shown
from broadgauge.messages.prepare_order import FetchOrder

SCHEME = "oci://"
TITLE = "org.opencontainers.image.title"
UNPACK = "io.deis.oras.content.unpack"
_DOCKER_HUB_API = "registry-1.docker.io"
_REFERENCE = re.compile(
    r"oci://(?P<host>[A-Za-z0-9.-]+(?::\d+)?)/(?P<name>[a-z0-9][a-z0-9._/-]*)"
    r"(?::(?P<tag>\w[\w.-]*)|@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_LOCAL = ("127.0.0.1", "localhost")
"""Registries that are asked without TLS."""
_GONE = (404, 410)
_CHALLENGE = re.compile(r'(realm|service|scope)="([^"]*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class _Registry:
    """One repository of it."""

    host: str
    name: str

    @property
    def base(self) -> str:
        local = self.host.partition(":")[0] in _LOCAL
        asked = _DOCKER_HUB_API if self.host in DOCKER_HUB else self.host
        return f"{'http' if local else 'https'}://{asked}/v2/{self.name}"

    def manifest(self, reference: str) -> tuple[ReadAnswer, str | None]:
        """It, and how the registry asks who this is; None: it does not. Raises FetchError."""
        told, challenge = self._manifest(reference)
        if reference.startswith("sha256:") and reference != f"sha256:{told.sha256}":
            raise FetchError(f"{self.base}: another manifest than {reference} came")
        return told, challenge

    def _manifest(self, reference: str) -> tuple[ReadAnswer, str | None]:
        url = f"{self.base}/manifests/{reference}"
        accept = ", ".join(_MANIFESTS)
        try:
            return read_json(url, None, accept), None
        except HttpStatusError as error:
            if error.status != 401:
                raise
            challenge = error.challenge
        return read_json(url, self.authorization(challenge), accept), challenge

    def authorization(self, challenge: str) -> str:
        """What the registry's challenge asks for. Raises FetchError."""
        known = credentials(self.host, self.name)
        if challenge.lower().startswith("basic"):
            if known is None:
                raise LastingError(f"{self.host} asks who this is: {HINT}")
            return f"Basic {known}"
        parts = dict(_CHALLENGE.findall(challenge))
        realm = parts.pop("realm", "")
        if not realm.startswith("https://") and urlsplit(realm).hostname not in _LOCAL:
            raise LastingError(f"{self.host} names no place to log in by TLS: {shown(realm)!r}")
        parts.setdefault("scope", f"repository:{self.name}:pull")
        told = read_json(f"{realm}?{urlencode(parts)}", known and f"Basic {known}").content
        token = told.get("token") or told.get("access_token") if isinstance(told, dict) else None
        if not isinstance(token, str):
            raise FetchError(f"{shown(realm)} gave no token")
        return f"Bearer {token}"


def fetch_artifact(order: FetchOrder, room: PartialFolders) -> str:
    """Its files that were asked for, each by its digest. Gives the manifest's digest: an earlier
    try's, where it still can be asked for, since a tag may have moved. Raises FetchError and
    OSError."""
    found = _REFERENCE.fullmatch(order.source)
    if found is None:
        raise LastingError(f"{shown(order.source)} is not like oci://host/team/model:tag")
    registry = _Registry(host=found["host"], name=found["name"])
    reference = found["tag"] or found["digest"] or "latest"
    is_open = False
    try:
        told, challenge = _manifest(registry, reference, order.source, room.kept_version())
        is_open = True
        files = _files(told.content, registry.base, order.source)
        digest = f"sha256:{told.sha256}"
        room.keep_version(digest)
        say(f"{shown(order.source)}: an artifact of {len(files)} files")
        fetch_files(order, files, room, lambda: challenge and registry.authorization(challenge))
    except HttpStatusError as error:
        if error.status == 401 and is_open:  # a token lives for minutes, and a file takes longer
            raise FetchError(str(error)) from None
        if error.status in (401, 403):
            raise LastingError(f"{error}: {HINT}") from None
        if error.is_lasting:
            raise LastingError(f"{error}: there is no such model") from None
        raise FetchError(str(error)) from None
    return digest


def _manifest(
    registry: _Registry, reference: str, source: str, kept: str | None
) -> tuple[ReadAnswer, str | None]:
    """Raises FetchError."""
    if kept is not None:
        try:
            return registry.manifest(kept)
        except HttpStatusError as error:
            if error.status not in _GONE:
                raise
            say(f"{shown(source)} has {kept} no more: what came of it is left")
    told, challenge = registry.manifest(reference)
    if isinstance(told.content, dict) and "manifests" in told.content:
        return registry.manifest(_first(told.content, source))
    return told, challenge


def _first(index: Any, source: str) -> str:
    """Of several manifests: a model is the same for every machine. Raises LastingError."""
    try:
        return str(index["manifests"][0]["digest"])
    except (IndexError, KeyError, TypeError):
        raise LastingError(f"{source}: it lists no manifest") from None


def _files(manifest: Any, base: str, source: str) -> list[RemoteFile]:
    """Raises LastingError where its layers are no files."""
    try:
        layers = [(each["annotations"][TITLE], each["digest"]) for each in manifest["layers"]]
    except (KeyError, TypeError):
        raise LastingError(
            f"{shown(source)} is an image and no artifact of files: its layers have no titles"
        ) from None
    packed = [
        each["annotations"][TITLE]
        for each in manifest["layers"]
        if each["annotations"].get(UNPACK) == "true"
    ]
    if packed:
        raise LastingError(
            f"{shown(source)}: its {packed[0]!r} is a folder that was packed ({UNPACK}), and only "
            "files are fetched: push the files, each by its name"
        )
    found = []
    for title, digest in layers:
        known = _DIGEST.fullmatch(str(digest))
        if known is None:
            raise LastingError(f"{shown(source)}: {digest!r} is no SHA-256 digest")
        url = f"{base}/blobs/{known[0]}"
        found.append(RemoteFile(path=str(title), url=url, sha256=known[1]))
    return found
