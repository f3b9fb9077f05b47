"""How does a rank measure with no agent beside it? `broadgauge.zip measure case.json`, by torchrun.

A thread of the rank's own process plays the agent: it gives the trials of this launch, lets ranks
go on from a mark when all of them are there, and prints what is measured, a line of JSON a block
behind `broadgauge-block: `. No counters are read: what crosses the network is not told.
"""

import fcntl
import json
import os
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from broadgauge.messages.codec import JsonObject
from broadgauge.messages.frames import FrameReader, FrameWriter, unique_sender
from broadgauge.messages.pod_case import POD_CASE, PodCase
from broadgauge.messages.rank import (
    COMMAND_FD_VARIABLE,
    RESULT_FD_VARIABLE,
    EndCommand,
    ReleaseCommand,
)
from broadgauge.probes import worker
from broadgauge.probes.identity import RankIdentity

BLOCK_WORD = "broadgauge-block: "
"""How the line of a block begins."""
WRONG_START = 2
_READ_BYTES = 65_536


def main() -> int:
    """Of one rank."""
    try:
        (path,) = sys.argv[1:]
        case = POD_CASE(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"measure: no case of this version: {error}\n")
        return WRONG_START
    identity = RankIdentity.from_environment(os.environ)
    command_out, command_in = os.pipe()
    result_out, result_in = os.pipe()
    os.environ[COMMAND_FD_VARIABLE] = str(command_out)
    os.environ[RESULT_FD_VARIABLE] = str(result_in)
    stand_in = _StandIn(Path(path), case, identity, command_in, result_out)
    threading.Thread(target=stand_in.serve, name="agent", daemon=True).start()
    return worker.main()


class _StandIn:
    """The agent of this one rank."""

    def __init__(
        self, path: Path, case: PodCase, identity: RankIdentity, command_fd: int, result_fd: int
    ) -> None:
        """`path`: the case's own, which every rank of the pod can lock."""
        self._path, self._case, self._identity = path, case, identity
        self._command_fd, self._result_fd = command_fd, result_fd
        self._frames = FrameWriter(unique_sender("agent"))
        self._store: Any = None
        self._left = list(case.trials)

    def serve(self) -> None:
        """Until the rank has no trial left. What goes wrong here ends the rank: it would wait for
        ever."""
        try:
            reader = FrameReader()
            while data := os.read(self._result_fd, _READ_BYTES):
                for received in reader.feed(data)[0]:
                    self._hear(received.message)
        except Exception as error:  # noqa: BLE001  whatever it is
            sys.stderr.write(f"measure: {type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(1)

    def _hear(self, message: JsonObject) -> None:
        kind = message["type"]
        if kind in ("hello", "done"):
            self._give(self._left.pop(0) if self._left else EndCommand())
        elif kind == "mark":
            self._meet(f"{message['trial_id']}/{message['label']}")
            self._give(ReleaseCommand(label=str(message["label"])))
        elif kind in ("block", "failed"):
            text = json.dumps(message | {"rank": self._identity.rank}, separators=(",", ":"))
            with self._path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # other ranks write to the same pipe
                sys.stdout.write(f"{BLOCK_WORD}{text}\n")
                sys.stdout.flush()

    def _give(self, command: object) -> None:
        data = memoryview(self._frames.write(command))
        while data:
            data = data[os.write(self._command_fd, data) :]

    def _meet(self, label: str) -> None:
        """Wait for all ranks, by a connection of our own to the launch's store."""
        key = f"broadgauge/{label}"
        store = self._own_store()
        if store.add(f"{key}/count", 1) == self._identity.world_size:
            store.set(f"{key}/all", "1")
        store.wait([f"{key}/all"])

    def _own_store(self) -> Any:
        if self._store is None:
            self._store = dist.TCPStore(
                self._identity.master_addr,
                self._identity.master_port,
                self._identity.world_size,
                is_master=False,
                timeout=timedelta(seconds=self._case.meet_s),
            )
        return self._store


if __name__ == "__main__":
    sys.exit(main())
