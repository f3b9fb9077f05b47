"""What does a pod of ours run? An agent; in the first pod a leader beside it.

The process is the first of its container: it hands on the end that a cluster asks for, and its
exit code is the job's.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile

from broadgauge.agent.on_host import AgentStart, LeaderRefused
from broadgauge.agent.pod.place import NoPlaceError, PodPlace, place_of
from broadgauge.agent.pod.pod_agent import PodAgent, say
from broadgauge.agent.supervisor.programs import zip_file
from broadgauge.messages.frames import plain_line
from broadgauge.messages.leader import LeaderStart

WRONG_START = 2
TERMINATION_LOG = Path("/dev/termination-log")
"""Source: Kubernetes API reference, Container, terminationMessagePath."""
LAST_WORDS_S = 30.0
"""For a leader whose agents have ended."""


def main() -> int:
    """Until the leader has nothing more to do."""
    try:
        place = place_of(os.environ)
    except NoPlaceError as error:
        _say_at_last(plain_line(str(error)))
        return WRONG_START
    os.environ.pop("BROADGAUGE_TOKEN", None)  # ranks inherit what this process has
    signal.signal(signal.SIGTERM, _end)
    working = _working_folder(place)
    try:
        leader = _start_leader(place) if place.leads else None
    except OSError as error:
        _say_at_last(
            f"its leader can't keep anything in {error.filename}: {error.strerror}{_right(error)}"
        )
        return WRONG_START
    try:
        asyncio.run(PodAgent(_agent_start(place, working), place).serve())
    except (OSError, LeaderRefused, asyncio.TimeoutError) as error:
        say(f"node {place.number} ends: {str(error) or type(error).__name__}")
        return _last_words(leader) or 1
    except SystemExit:
        if leader is not None:
            leader.terminate()
            leader.wait()
        raise
    return _last_words(leader)


def _end(number: int, frame: object) -> None:
    """The first process of a container is not ended by a signal that it does not take."""
    del frame
    sys.exit(128 + number)


def _agent_start(place: PodPlace, working: Path) -> AgentStart:
    archive = zip_file()
    assert archive is not None, "a pod has the zip file and nothing else of ours"
    logs = str(place.scratch / "logs")
    return AgentStart(
        number=place.number,
        leader_address="127.0.0.1" if place.leads else place.leader_address,
        leader_port=place.leader_port,
        token=place.token,
        version=archive.name,
        folder=str(place.scratch / "agent"),
        supervisor=(sys.executable, str(archive), "supervise", logs, str(working)),
        logs=logs,
        working_folder=str(working),
        secrets={},
    )


def _start_leader(place: PodPlace) -> "subprocess.Popen[bytes]":
    """Raises OSError where its files can't be made."""
    archive = zip_file()
    assert archive is not None, "as above"
    folder = place.scratch / "leader"
    folder.mkdir(0o700, parents=True, exist_ok=True)
    start = LeaderStart(
        folder=str(folder),
        address=place.own_address,
        token=place.token,
        version=archive.name,
        keep_s=place.linger_s,
        port=place.leader_port,
        orders=str(place.orders),
        preflight_s=place.preflight_s,
        kept_in="" if place.results is None else _usable(place.results),
    )
    process = subprocess.Popen(
        [sys.executable, str(archive), "leader-in-pod"], stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asdict(start)).encode() + b"\n")
    process.stdin.close()
    return process


def _usable(folder: Path) -> str:
    """Before hours are spent: can anything be kept there? Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryFile(dir=folder) as file:
        file.write(b"kept")
    return str(folder)


def _say_at_last(text: str) -> None:
    """In the log, and as the container's reason to end: who waits for the pod sees that."""
    say(text)
    with suppress(OSError), TERMINATION_LOG.open("r+") as file:  # none is made where none is
        file.write(text)


def _right(error: OSError) -> str:
    """What gives it to a user who may not write there; empty: it is not that."""
    if not isinstance(error, PermissionError):
        return ""
    groups = sorted({os.getegid(), *os.getgroups()})
    return (
        f": user {os.geteuid()}, groups {groups}, may not write this volume. "
        "`kubernetes.fs_group` gives it to a group that may, where the volume's driver can; "
        "`kubernetes.run_as_user` is another user"
    )


def _last_words(leader: "subprocess.Popen[bytes] | None") -> int:
    """Of the leader that runs here: its exit code is the pod's."""
    if leader is None:
        return 0
    with suppress(subprocess.TimeoutExpired):
        return leader.wait(LAST_WORDS_S)
    leader.terminate()
    return leader.wait()


def _working_folder(place: PodPlace) -> Path:
    """Ranks may write where they run: what was sent is copied."""
    if place.working_folder is not None:
        return place.working_folder
    working = place.scratch / "work"
    if place.files.is_dir():
        # A ConfigMap's folder has links to hidden ones, which change when it is updated.
        shutil.copytree(
            place.files, working, dirs_exist_ok=True, ignore=shutil.ignore_patterns("..*")
        )
    else:
        working.mkdir(parents=True, exist_ok=True)
    return working


if __name__ == "__main__":
    sys.exit(main())
