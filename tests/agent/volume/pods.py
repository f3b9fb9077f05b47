"""The pods that fill a volume and wait for it, as processes: the zip file, and their order."""

import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from broadgauge.agent import bundle
from broadgauge.messages.codec import encode
from broadgauge.messages.prepare_order import (
    VARIABLE,
    CommandOrder,
    FetchedKind,
    FetchOrder,
    PrepareOrder,
)

LIMIT_S = 300.0


def fetch_order(source: str, kind: FetchedKind = "model", **more: Any) -> FetchOrder:
    return FetchOrder(kind=kind, name=f"{kind}-x", source=source, **more)


class VolumePods:
    """On a volume of their own, below the test's folder."""

    def __init__(self, folder: Path) -> None:
        self.mount = folder / "volume"
        self.mount.mkdir()
        self.root = self.mount / "broadgauge"
        self._folder = folder
        for name, parts in (("prepare", bundle.PREPARE_PARTS), ("wait", bundle.POD_PARTS)):
            (folder / f"{name}.zip").write_bytes(bundle.build(parts))

    def order(self, *fetched: FetchOrder, command: CommandOrder | None = None) -> PrepareOrder:
        return PrepareOrder(root=str(self.root), maker="it", fetched=fetched, command=command)

    def start(
        self,
        program: str,
        order: PrepareOrder,
        *words: str,
        python: str = sys.executable,
        **variables: str,
    ) -> "subprocess.Popen[str]":
        return self._start(
            [python, "-S", str(self._folder / f"{program}.zip"), program, *words], order, variables
        )

    def start_with_local_locks(self, order: PrepareOrder) -> "subprocess.Popen[str]":
        """As on a node of its own whose mount tells no other node of its locks."""
        code = (
            f"import fcntl, pathlib, sys; sys.path.insert(0, {str(self._folder / 'prepare.zip')!r})"
            "\nfcntl.lockf = lambda *_: None"
            "\nfrom broadgauge.agent.volume import prepare, rooms"
            f"\nrooms._BOOT, rooms.STILL_S = pathlib.Path('/no/such'), {LIMIT_S}"
            "\nsys.exit(prepare.main())"
        )
        return self._start([sys.executable, "-S", "-c", code], order, {})

    def _start(
        self, words: Sequence[str], order: PrepareOrder, variables: Mapping[str, str]
    ) -> "subprocess.Popen[str]":
        told = {VARIABLE: json.dumps(encode(order)), "HOME": str(self._folder), **variables}
        return subprocess.Popen(
            words,
            env={"PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": "1", **told},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, program: str, order: PrepareOrder, *words: str, **more: str) -> tuple[int, str]:
        """Exit code and log."""
        process = self.start(program, order, *words, **more)
        log, _ = process.communicate(timeout=LIMIT_S)
        return process.returncode, log

    def names(self) -> list[str]:
        """What is in the folder of what was fetched, without the locks."""
        return sorted(path.name for path in self.root.iterdir() if path.suffix != ".lock")


def archive(path: Path, members: Mapping[str, bytes]) -> Path:
    """A zip or a tar, by its name."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as packed:
            for name, data in members.items():
                packed.writestr(name, data)
        return path
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    return path
