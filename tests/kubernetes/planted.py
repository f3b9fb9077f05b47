"""Where in a cluster, in a run's folder or on a screen does a planted value stand?"""

import base64
import gzip
import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.kubernetes.cluster.api import Manifest, RefusedError
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.cluster.waiting import wait_until
from tests.timeouts import HANG_S

BY_SECRET = "hf_Planted0by0a0Secret0of0the0namespace"
BY_ENVIRONMENT = "Planted0declared0in0the0experiment"
UNASKED = {
    "HF_TOKEN": "hf_Planted0in0the0shell0and0asked0by0nobody",
    "WANDB_API_KEY": "Planted0in0the0shell0which0is0nobodys",
}
"""In the environment of whoever starts the run; the first has the name of what a Secret gives."""
OF_SHELL = {"MINE": BY_ENVIRONMENT, **UNASKED}
NEEDLES = (BY_SECRET, *OF_SHELL.values())
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"


def script() -> str:
    """A user's, which reads both and says only that they are right."""
    wanted = {"HF_TOKEN": BY_SECRET, "MINE": BY_ENVIRONMENT}
    digests = {name: hashlib.sha256(value.encode()).hexdigest() for name, value in wanted.items()}
    return (
        "import hashlib, os\n"
        f"wanted = {digests}\n"
        "found = {name: hashlib.sha256(os.environ[name].encode()).hexdigest() for name in wanted}\n"
        "print('known', int(found == wanted and 'WANDB_API_KEY' not in os.environ))\n"
    )


def places(texts: Iterable[tuple[str, bytes]]) -> list[str]:
    """Where one stands: as it is, in base64, or below gzip and zip."""
    return [
        f"{name}: {needle}"
        for place, content in texts
        for name, data in _opened(place, content)
        for needle in NEEDLES
        if any(form in data for form in _forms(needle))
    ]


def _forms(needle: str) -> Iterator[bytes]:
    """Base64 has three, by where in its groups of three the value begins."""
    value = needle.encode()
    yield value
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + value).rstrip(b"=")
        yield encoded[shift + 1 if shift else 0 : -1]


def _opened(place: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    yield place, content
    if content.startswith(_GZIP):
        yield from _opened(f"{place} (gzip)", gzip.decompress(content))
    elif content.startswith(_ZIP):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield from _opened(f"{place}/{name}", archive.read(name))


def of_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    """All of its files."""
    for path in folder.rglob("*"):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()


def of_namespace(scratch: Scratch) -> Iterator[tuple[str, bytes]]:
    """Each object of each kind that the server has there, but Secrets; ConfigMaps opened."""
    for path in _lists(scratch):
        for item in _items(scratch, path):
            name = f"{path}/{item['metadata']['name']}"
            yield name, json.dumps(item).encode()
            binary: Mapping[str, str] = item.get("binaryData") or {}
            for key, value in binary.items():
                yield f"{name}/{key}", base64.b64decode(value)


def _items(scratch: Scratch, path: str) -> list[Manifest]:
    """Also of a kind whose storage the server begins with when it is asked."""
    found: list[Manifest] = []

    def is_told() -> bool:
        try:
            found[:] = scratch.api.request("GET", path)["items"]
        except RefusedError as refusal:
            if refusal.status != 429:
                raise
            return False
        return True

    wait_until(is_told, path)
    return found


def _lists(scratch: Scratch) -> Iterator[str]:
    groups = scratch.api.request("GET", "/apis")["groups"]
    found = [f"/apis/{each['preferredVersion']['groupVersion']}" for each in groups]
    for root in ("/api/v1", *found):
        for each in scratch.api.request("GET", root)["resources"]:
            if each["namespaced"] and "list" in each["verbs"] and each["name"] != "secrets":
                yield f"{root}/namespaces/{scratch.namespace}/{each['name']}"


@contextmanager
def followed_logs(
    scratch: Scratch, containers: Iterable[tuple[str, str]]
) -> Iterator[dict[tuple[str, str], list[str]]]:
    """Of these pods' containers, from their beginning to their end, as anybody in the namespace
    reads them."""
    logs: dict[tuple[str, str], list[str]] = {each: [] for each in containers}

    def follow(pod: str, container: str) -> None:
        path = f"/api/v1/namespaces/{scratch.namespace}/pods/{pod}/log"
        # The tool deletes the pod, perhaps before the last line is here.
        with suppress(RefusedError, OSError):
            for line in scratch.api.lines(path, container=container, follow="true"):
                logs[pod, container].append(line)

    threads = [threading.Thread(target=follow, args=each, daemon=True) for each in logs]
    for thread in threads:
        thread.start()
    try:
        yield logs
    finally:
        for thread in threads:
            thread.join(HANG_S)
