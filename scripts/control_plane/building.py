"""What is missing in the cache, built.

Each folder is made in whole beside its place and then renamed, so that a build that is cut leaves
no half of one; what Go had compiled stays, and the next build goes on with it.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.control_plane.go_tool import BuildError, Go, Took, find_go
from scripts.control_plane.recipes import Build, Schemas, missing

WORKPLACE = "building"
"""In the cache: several GB, removed when all is built."""
_ROOM_BYTES = 6 * 10**9
"""Free on the cache's file system before anything is built: modules, what is compiled, programs."""

Say = Callable[[str], None]


def build_missing(cache: Path, *, jobs: int, keep: bool, say: Say) -> None:
    """Makes what is missing."""
    cache.mkdir(parents=True, exist_ok=True)
    with only_one_build(cache, say):
        lacking = missing(cache)
        if not lacking:
            say(f"all is there: {cache}")
            return
        is_built = any(isinstance(each, Build) for each in lacking)
        if is_built:
            _refuse_full_disk(cache)
        workplace = cache / WORKPLACE
        workplace.mkdir(exist_ok=True)
        go, took = find_go(cache, workplace)
        what = "built: minutes on two cores" if is_built else "downloaded: schemas only"
        say(f"{what}; with {go.program}, into {cache}")
        if took:
            _tell(say, "go", took)
        for each in lacking:
            if isinstance(each, Build):
                make(go, cache, each, jobs=jobs, say=say)
            else:
                download(go, cache, each, say=say)
        if not keep:
            begin_s = time.monotonic()
            shutil.rmtree(workplace)
            say(f"removed what Go had downloaded and compiled: {time.monotonic() - begin_s:.0f} s")


@contextmanager
def only_one_build(cache: Path, say: Say) -> Iterator[None]:
    """Waits while another process builds here."""
    with (cache / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build is under way: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make(go: Go, cache: Path, build: Build, *, jobs: int, say: Say) -> None:
    """Its folder: all of it or nothing."""
    folder, unfinished = cache / build.folder_name(), _empty(go.workplace / build.name)
    # Only what is compiled: `go mod download` would fetch what the tests of others need, too.
    packages = build.programs.values()
    listed = ("list", "-deps", "-f", "", *packages)
    _tell(say, "modules", go.fetch(f"modules of {build.name}", *listed, folder=build.folder))
    for name, package in build.programs.items():
        compiled = ("build", f"-p={jobs}", *build.flags(), "-o", str(unfinished / name), package)
        _tell(say, name, go.run(*compiled, folder=build.folder))
        for link in build.links.get(name, ()):
            (unfinished / link).symlink_to(name)
    for module, patterns in build.manifests.items():
        found = go.run("list", "-m", "-f", "{{.Dir}}", module, folder=build.folder).output.strip()
        _copy(Path(found), patterns, unfinished / "manifests" / module)
    unfinished.rename(folder)


def download(go: Go, cache: Path, schemas: Schemas, *, say: Say) -> None:
    """Its folder: all of it or nothing."""
    unfinished = _empty(go.workplace / schemas.name)
    wanted = f"{schemas.module}@{schemas.version}"
    took = go.fetch(wanted, "mod", "download", "-json", wanted, folder=go.workplace)
    there = json.loads(took.output)
    if there["Sum"] != schemas.hash:
        raise BuildError(f"{wanted} is {there['Sum']}, and should be {schemas.hash}")
    _copy(Path(there["Dir"]), schemas.patterns, unfinished)
    unfinished.rename(cache / schemas.folder_name())
    _tell(say, schemas.name, took)


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _copy(source: Path, patterns: tuple[str, ...], folder: Path) -> None:
    """Files of a module, to where they stand in it."""
    for pattern in patterns:
        found = sorted(source.glob(pattern))
        if not found:
            raise BuildError(f"{source.name} has no file {pattern}")
        for path in found:
            target = folder / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def _refuse_full_disk(cache: Path) -> None:
    free_bytes = shutil.disk_usage(cache).free
    if free_bytes < _ROOM_BYTES:
        raise BuildError(
            f"{cache}: {free_bytes / 1e9:.1f} GB are free, {_ROOM_BYTES / 1e9:.0f} GB are needed\n"
            "  hint: make room, or name another folder: BROADGAUGE_CACHE=/path"
        )


def _tell(say: Say, name: str, took: Took) -> None:
    say(f"{name:<18}{took.wall_s:>7.0f} s wall{took.core_s:>7.0f} s core")


def available_cores() -> int:
    return len(os.sched_getaffinity(0))
