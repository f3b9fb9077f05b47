"""Where are the files that trials left? `artifacts/<trial_id>.<name>`: traces, logs, lists.

A rank says what a file in the run's folder holds (its SHA-256), such as one beside its log; it is
copied here before its record is written. What is too large, elsewhere, gone, or no longer what the
rank said is not kept, and the record says why. A reader is told of files that are missing or have
another size, and `read_artifact` gives no byte that is not the record's.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from broadgauge.results.folder import disk
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.records.record import KeptArtifact, Record
from broadgauge.specs.units import show_size

if TYPE_CHECKING:  # a run is shown without what ranks say
    from broadgauge.messages.rank import Artifact

ARTIFACTS_FOLDER = "artifacts"
MAX_ARTIFACT_BYTES = 256 * 2**20
MAX_TRIAL_BYTES = 2**30
MOST_ARTIFACTS = 64
"""Of one trial; each takes some 250 bytes of its record."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def keep_artifacts(
    folder: Path, trial_id: str, left: Sequence[Artifact]
) -> tuple[KeptArtifact, ...]:
    """Copies each, synced, and says where, or why not. Raises RunFolderError for this disk only."""
    kept: list[KeptArtifact] = []
    room_bytes = MAX_TRIAL_BYTES
    for artifact in left[:MOST_ARTIFACTS]:
        problem = _why_not(artifact, {other.name for other in kept}, room_bytes)
        relative = f"{ARTIFACTS_FOLDER}/{trial_id}.{artifact.name}"
        if problem is None:
            problem = _copy(artifact, folder, folder / relative)
        if problem is None:
            room_bytes -= artifact.size_bytes
        kept.append(
            KeptArtifact(
                name=artifact.name[:100],
                kind=artifact.kind,
                path=relative if problem is None else None,
                size_bytes=artifact.size_bytes,
                sha256=artifact.sha256,
                problem=problem,
            )
        )
    return tuple(kept)


def _why_not(artifact: Artifact, names: set[str], room_bytes: int) -> str | None:
    if _NAME.fullmatch(artifact.name) is None or artifact.name.endswith(disk.PART):
        return "its name is no plain file name"
    if artifact.name in names:
        return "another has this name"
    most_bytes = min(MAX_ARTIFACT_BYTES, room_bytes)
    if artifact.size_bytes > most_bytes:
        return f"larger than the {show_size(most_bytes)} that are kept"
    return None


def _copy(artifact: Artifact, folder: Path, path: Path) -> str | None:
    """Why the copy is not what the rank said; None: it is. Then alone it is made."""
    if not Path(artifact.path).resolve().is_relative_to(folder.resolve()):
        return "it lies outside of the run's folder"
    try:
        content = disk.read_whole(Path(artifact.path), flags=os.O_NOFOLLOW)
    except (OSError, RunFolderError) as error:
        return f"it can't be read: {getattr(error, 'strerror', None) or error}"
    if len(content) != artifact.size_bytes or _sha256(content) != artifact.sha256:
        return "it changed after the rank reported it"
    with disk.telling("write", path):
        path.parent.mkdir(disk.PRIVATE_FOLDER, exist_ok=True)
        disk.write_whole(path, content)
    return None


def read_artifact(folder: Path, artifact: KeptArtifact) -> bytes:
    """What the rank left. Raises RunFolderError where it is not kept, or no longer that."""
    if artifact.path is None:
        raise RunFolderError(f"{artifact.name} was not kept: {artifact.problem}")
    path = folder / artifact.path
    if not path.resolve().is_relative_to(folder.resolve()):
        raise RunFolderError(f"the artifact {artifact.path} is outside of {folder}")
    with disk.telling("read", path):
        content = disk.read_whole(path)
    if _sha256(content) != artifact.sha256:
        raise RunFolderError(f"{path} was changed: it is not what the record names")
    return content


def artifact_notes(folder: Path, records: Sequence[Record]) -> list[str]:
    """Which are missing, which have another size than their record says? In sentences."""
    missing, changed = [], []
    for artifact in (each for record in records for each in record.artifacts):
        if artifact.path is None:
            continue
        try:
            size_bytes = (folder / artifact.path).stat().st_size
        except OSError:
            missing.append(artifact.path)
        else:
            if size_bytes != artifact.size_bytes:
                changed.append(artifact.path)
    notes = []
    if missing:
        notes.append(f"{len(missing)} artifacts of trials are missing, such as {missing[0]}")
    if changed:
        notes.append(f"{len(changed)} artifacts of trials were changed, such as {changed[0]}")
    return notes


def remove_orphans(folder: Path, trial_ids: Iterable[str], records: Sequence[Record]) -> int:
    """How many files were removed that a killed trial left? Only of trials of this run."""
    if not (folder / ARTIFACTS_FOLDER).is_dir():
        return 0
    kept = {artifact.path for record in records for artifact in record.artifacts}
    planned = set(trial_ids)
    with disk.telling("read", folder / ARTIFACTS_FOLDER):
        orphans = [
            path
            for path in (folder / ARTIFACTS_FOLDER).iterdir()
            if f"{ARTIFACTS_FOLDER}/{path.name}" not in kept
            and ".".join(path.name.split(".")[:3]) in planned
        ]
    for path in orphans:
        disk.remove(path)
    return len(orphans)


def remove_artifacts(folder: Path, trial_id: str) -> None:
    """Nothing of a trial that was not stored is left, as far as that can be had now."""
    for path in (folder / ARTIFACTS_FOLDER).glob(f"{trial_id}.*"):
        disk.remove(path)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
