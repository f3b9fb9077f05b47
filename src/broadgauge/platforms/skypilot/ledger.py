"""Which clusters has this run paid for, and which of them may still be there?

Written before a cluster is asked for, so that whoever goes on with the run knows of each, whatever
became of the tool.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from broadgauge.manifests.skypilot.clusters import ClusterKey
from broadgauge.messages.codec import DecodeError, Decoder, encode
from broadgauge.platforms.launch_folders import private
from broadgauge.specs.errors import RunFolderError

LEDGER_FILE = "skypilot.json"
"""In the run folder's logs."""
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCluster:
    """A cluster that was asked for."""

    name: str
    nodes: int
    network_tier: str
    began_unix_s: float
    most_s: float
    """It is gone after so long, whatever happens."""
    usd_per_node_hour: float | None
    """None: no price is known."""
    ended_unix_s: float | None = None
    """None: it may be there."""

    def is_of(self, key: ClusterKey) -> bool:
        """Is it the cluster of these cases?"""
        return (self.nodes, self.network_tier) == (key.nodes, key.network_tier)

    def held_s(self, now_unix_s: float) -> float:
        """How long it was, or has been, there at most."""
        until = now_unix_s if self.ended_unix_s is None else self.ended_unix_s
        return max(0.0, min(until - self.began_unix_s, self.most_s))

    def usd(self, now_unix_s: float) -> float | None:
        """What it has cost by now, about."""
        if self.usd_per_node_hour is None:
            return None
        return self.usd_per_node_hour * self.nodes * self.held_s(now_unix_s) / HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    clusters: tuple[HeldCluster, ...]


_STORED: Decoder[_Stored] = Decoder(_Stored)


class Ledger:
    """All clusters of a run."""

    def __init__(self, folder: Path) -> None:
        """Raises RunFolderError where it can't be read: clusters in it may be running."""
        self._path = folder / LEDGER_FILE
        self._held: dict[str, HeldCluster] = {}
        try:
            stored = _STORED(json.loads(self._path.read_text()))
        except FileNotFoundError:
            return
        except (OSError, ValueError, DecodeError) as error:
            raise RunFolderError(
                f"{self._path} can't be read, and clusters that it names may run: {error}",
                hint="`sky status` lists them, `sky down NAME` ends one; then remove the file",
            ) from error
        self._held = {each.name: each for each in stored.clusters}

    @property
    def open(self) -> tuple[HeldCluster, ...]:
        """Those that may be there."""
        return tuple(each for each in self._held.values() if each.ended_unix_s is None)

    def spent_usd(self, now_unix_s: float) -> float | None:
        """By all of them; None: of one no price is known."""
        parts = [each.usd(now_unix_s) for each in self._held.values()]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    def begin(self, held: HeldCluster) -> None:
        """It is about to be asked for. Raises RunFolderError."""
        self._store((*self._held.values(), held))

    def end(self, name: str, ended_unix_s: float) -> None:
        """It is gone. Raises RunFolderError."""
        changed = replace(self._held[name], ended_unix_s=ended_unix_s)
        self._store(tuple(changed if each.name == name else each for each in self._held.values()))

    def _store(self, clusters: Iterable[HeldCluster]) -> None:
        held = {each.name: each for each in clusters}
        draft = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(0o700, parents=True, exist_ok=True)
            with open(draft, "w", opener=private) as file:
                file.write(json.dumps(encode(_Stored(clusters=tuple(held.values())))) + "\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path)
        except OSError as error:
            raise RunFolderError(
                f"{self._path} can't be written: {error.strerror or error}",
                hint="no cluster is brought up that this run would not know of",
            ) from error
        self._held = held
