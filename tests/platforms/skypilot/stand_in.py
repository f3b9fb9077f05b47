"""A `sky` that has a cloud of its own: processes on this machine, with autodown as SkyPilot has it?

    sky launch ─▶ a process stands for API server and cluster: it goes on when `sky` is killed,
                  provisions, sets autodown, runs the first node's `setup` and `run`, goes when idle

What it prints is INVENTED, in the form of SkyPilot's lines and not their words; no transcript of a
cloud was there to replay. Its arguments are recorded. Time runs SPEED times as fast: `sleep` and
`date` of the scripts that it runs are its own. Faults are planted by files in its folder:
`fail-launch` (the next launch fails after machines are there), `fail-down` (so many `down` fail).
"""

import argparse
import fcntl
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.manifests.skypilot.task_model import read_task
from tests.platforms.skypilot.stand_in_cloud import (
    FOLDER,
    SPEED,
    SSH_CONFIG,
    TICK_S,
    forget_hosts,
    fork_cluster,
    locked,
    store,
)

__all__ = ["FOLDER", "SPEED", "SSH_CONFIG", "asked", "clusters", "install"]


def install(folder: Path, *, python: str = sys.executable) -> Path:
    """Make its folder, with `bin` for PATH."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    root = Path(__file__).parents[3]
    script = f'#!/bin/sh\nPYTHONPATH={root}/src:{root} exec {python} -m {__name__} "$@"\n'
    (programs / "sky").write_text(script)
    (programs / "sky").chmod(0o755)
    (folder / "clusters").mkdir()
    return programs


def clusters(folder: Path) -> dict[str, dict[str, Any]]:
    """What is paid for at this moment."""
    return {path.stem: json.loads(path.read_text()) for path in _files(folder)}


def asked(folder: Path) -> list[list[str]]:
    """The arguments of each `sky` so far."""
    path = folder / "argv.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _files(folder: Path) -> list[Path]:
    return sorted((folder / "clusters").glob("*.json"))


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main(words: list[str]) -> int:
    folder = Path(os.environ[FOLDER])
    with (folder / "argv.jsonl").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(words) + "\n")
    parser = argparse.ArgumentParser(prog="sky", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    launch = commands.add_parser("launch", allow_abbrev=False)
    launch.add_argument("entrypoint", type=Path)
    launch.add_argument("--cluster", "-c", required=True)
    launch.add_argument("--idle-minutes-to-autostop", "-i", type=int)
    launch.add_argument("--wait-for")
    launch.add_argument("--secret", action="append", default=[])
    for flag in ("--down", "--yes"):
        launch.add_argument(flag, action="store_true")
    down = commands.add_parser("down", allow_abbrev=False)
    down.add_argument("--yes", action="store_true", required=True)
    down.add_argument("cluster")
    status = commands.add_parser("status", allow_abbrev=False)
    status.add_argument("--refresh", action="store_true")
    status.add_argument("--output", choices=("json",), required=True)
    status.add_argument("cluster")
    options = parser.parse_args(words)
    match options.command:
        case "launch":
            return _launch(folder, options)
        case "down":
            return _down(folder, options.cluster)
        case _:
            return _status(folder, options.cluster)


def _launch(folder: Path, options: argparse.Namespace) -> int:
    """Ask the server, and follow the job."""
    task = read_task(options.entrypoint.read_text())
    for name in task.secrets:
        assert name in options.secret, f"{name} has no value"
        assert os.environ.get(name), f"{name} is not set"
    assert options.yes, "it would ask"
    log = folder / f"{options.cluster}.{len(asked(folder))}.log"
    log.touch()
    with locked(folder):
        path = folder / "clusters" / f"{options.cluster}.json"
        is_new = not path.exists()
        if is_new:
            store(path, {"status": "INIT", "nodes": task.num_nodes, "autostop": -1, "queue": []})
        state = json.loads(path.read_text())
        state["queue"] += [
            {
                "log": str(log),
                "setup": task.setup,
                "run": task.run,
                "idle_minutes": options.idle_minutes_to_autostop if options.down else None,
            }
        ]
        store(path, state)
    if is_new:
        fork_cluster(folder, options.cluster, task)
    return _follow(log, path)


def _follow(log: Path, cluster: Path) -> int:
    with log.open() as file:
        while True:
            is_gone = not cluster.exists()
            line = file.readline()
            if line.startswith("exit "):
                return int(line.split()[1])
            if line:
                sys.stdout.write(line)
                sys.stdout.flush()
            elif is_gone:
                return 1
            else:
                time.sleep(TICK_S)


def _down(folder: Path, cluster: str) -> int:
    fail = folder / "fail-down"
    if fail.exists() and (left := int(fail.read_text())) > 0:
        fail.write_text(str(left - 1))
        _print("invented: the cloud did not answer")
        return 1
    with locked(folder):
        path = folder / "clusters" / f"{cluster}.json"
        if path.exists():
            state = json.loads(path.read_text())
            path.unlink()
            if "pid" in state:
                with suppress(ProcessLookupError):
                    os.killpg(state["pid"], signal.SIGKILL)
    forget_hosts(cluster)
    _print(f"invented: terminating cluster {cluster}...done")
    return 0


def _status(folder: Path, cluster: str) -> int:
    found = [
        {"name": name, "status": state["status"], "autostop": state["autostop"]}
        for name, state in clusters(folder).items()
        if name == cluster
    ]
    _print("invented: \x1b[1mclusters\x1b[0m")
    _print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
