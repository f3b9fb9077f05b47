"""What is fetched for an experiment's jobs, and where on the volume will it be?

Folders are named by what they hold and by a checksum of what was asked for, so that every job that
asks for the same finds the same, and other jobs nothing of theirs changed.
"""

import hashlib
import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broadgauge.messages.codec import encode
from broadgauge.messages.prepare_order import CommandOrder, FetchedKind, FetchOrder, PrepareOrder
from broadgauge.specs.kubernetes.pod_prepare import FOLDER, FetchedSource, PodPrepare
from broadgauge.specs.kubernetes.pod_volumes import OURS, Volume
from broadgauge.specs.kubernetes.settings import Kubernetes

PREPARE_FILES = f"{OURS}/files"
"""In the pod that prepares: the user's files that its command needs."""
TOKENS = ("HF_TOKEN", "REGISTRY_AUTH")
"""Variables by which the hub and a registry know who asks."""
_KEY_CHARACTERS, _SHORT_KEY_CHARACTERS = 16, 8
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """Of all jobs of an experiment."""

    order: PrepareOrder
    program: bytes
    """The zip file that its pod runs."""
    files: Mapping[str, bytes]
    """The user's that its command needs, by path below the experiment's folder."""


def preparation(
    settings: Kubernetes, prefix: str, files: Mapping[str, bytes], program: bytes
) -> Preparation | None:
    """None: all is there. The Job's name has a checksum, too, of all that its pod may be made of:
    none can be changed once it is there, and another that finds all done does nothing."""
    if settings.prepare is None:
        return None
    mount = filled_volume(settings, settings.prepare).path
    fetched = tuple(_fetched(settings.prepare, mount))
    command = _command(settings.prepare, mount, fetched, files)
    told = [encode(each) for each in (*fetched, *([command] if command else []))]
    key = _key([settings.model_dump(mode="json"), *told])[:_SHORT_KEY_CHARACTERS]
    order = PrepareOrder(
        root=posixpath.join(mount, FOLDER),
        maker=f"{prefix}-prepare-{key}",
        fetched=fetched,
        command=command,
    )
    return Preparation(order=order, program=program, files=files)


def filled_volume(settings: Kubernetes, prepare: PodPrepare) -> Volume:
    """Which of the experiment's it is."""
    return next(each for each in settings.volumes if each.name == prepare.volume)


def order_text(order: PrepareOrder) -> str:
    """As pods are told it, without what is not said."""
    return json.dumps(_said(encode(order)), ensure_ascii=False)


def _said(told: Any) -> Any:
    if isinstance(told, dict):
        return {key: _said(value) for key, value in told.items() if value not in (None, [])}
    return [_said(each) for each in told] if isinstance(told, list) else told


def _fetched(prepare: PodPrepare, mount: str) -> list[FetchOrder]:
    kinds: dict[FetchedKind, FetchedSource | None] = {
        "model": prepare.model,
        "dataset": prepare.dataset,
    }
    return [_fetch(kind, each, mount) for kind, each in kinds.items() if each is not None]


def _fetch(kind: FetchedKind, asked: FetchedSource, mount: str) -> FetchOrder:
    """Of a repository a file alone is fetched, and so the key has it."""
    is_of_the_hub = asked.is_of_the_hub
    revision = (asked.revision or "main") if is_of_the_hub else None
    alone = asked.file if is_of_the_hub else None
    key = _key([kind, asked.source, revision, alone, asked.sha256, *sorted(asked.leave_out)])
    return FetchOrder(
        kind=kind,
        name="-".join(part for part in (kind, _word(asked.source), key) if part),
        source=asked.source,
        revision=revision,
        file=asked.file,
        sha256=asked.sha256,
        leave_out=asked.leave_out,
        link=_link(mount, asked.to),
    )


def _command(
    prepare: PodPrepare,
    mount: str,
    fetched: tuple[FetchOrder, ...],
    files: Mapping[str, bytes],
) -> CommandOrder | None:
    """Another script of the same name is another command."""
    asked = prepare.command
    if asked is None:
        return None
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    key = _key([asked.words, [[each.name, each.file] for each in fetched], digests])
    return CommandOrder(
        name=f"command-{key}",
        words=asked.words,
        folder=PREPARE_FILES if files else mount,
        file=asked.file,
        link=_link(mount, asked.to),
    )


def _link(mount: str, to: str | None) -> str | None:
    return None if to is None else posixpath.join(mount, to)


def _word(source: str) -> str:
    """`granite-3.1-8b-starter-v2`: of a hub's id, a URL or a path its last part."""
    last = source.partition("?")[0].rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9.]+", "-", last).strip("-.")[:_SHOWN_CHARACTERS]


def _key(content: object) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_CHARACTERS]
