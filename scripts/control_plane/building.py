"""What is missing in the cache, built and downloaded.

The other programs' modules and the manifests are downloaded while the first program compiles. Each
folder is made in whole beside its place and then renamed, so that a build that is cut leaves no
half of one; what Go had compiled stays, and the next build goes on with it.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.control_plane.go_tool import BuildError, Go, Took, install_go
from scripts.control_plane.recipes import (
    MANIFESTS,
    PROGRAMS,
    Manifests,
    Program,
    manifests_folder_name,
)

WORKPLACE = "building"
"""In the cache: several GB, removed when all is built."""
_ROOM_BYTES = 6 * 10**9
"""Free on the cache's file system before anything is built: modules, what is compiled, programs."""

Say = Callable[[str], None]


def build(cache: Path, names: Sequence[str], *, jobs: int, keep: bool, say: Say) -> None:
    """Makes what is missing of these programs and, always, the manifests."""
    cache.mkdir(parents=True, exist_ok=True)
    with only_one_build(cache, say):
        lacking = [each for each in PROGRAMS if each.name in names and not _is_there(cache, each)]
        has_manifests = (cache / manifests_folder_name()).is_dir()
        if not lacking and has_manifests:
            say("all is there")
            return
        _refuse_full_disk(cache)
        workplace = cache / WORKPLACE
        workplace.mkdir(exist_ok=True)
        go, took = install_go(cache, workplace)
        _tell(say, "go", took)
        if lacking:
            _tell(say, "modules", download_modules(go, lacking[0]))
        with ThreadPoolExecutor(max_workers=1) as beside:
            downloads: list[Future[Any]] = [
                beside.submit(download_modules, go, each) for each in lacking[1:]
            ]
            if not has_manifests:
                downloads.append(beside.submit(download_manifests, go, cache, say))
            for program in lacking:
                _tell(say, program.name, build_program(go, cache, program, jobs=jobs))
            for download in downloads:
                download.result()
        if not keep:
            shutil.rmtree(workplace)


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


def build_program(go: Go, cache: Path, program: Program, *, jobs: int) -> Took:
    """Compiles and links it, and puts it into its folder with its links."""
    folder = cache / program.folder_name()
    unfinished = _empty(go.workplace / program.name)
    output = unfinished / program.file_name
    took = go.run("build", f"-p={jobs}", *program.flags(), "-o", str(output), program.package)
    for link in program.links:
        (unfinished / link).symlink_to(program.file_name)
    unfinished.rename(folder)
    return took


def download_modules(go: Go, program: Program) -> Took:
    """Those of its packages."""
    return go.fetch("list", "-deps", "-f", "", program.package)


def download_manifests(go: Go, cache: Path, say: Say) -> None:
    """All releases' at once, then into one folder: `<name>/<path in its module>`."""
    unfinished = _empty(go.workplace / "manifests")
    with ThreadPoolExecutor(max_workers=len(MANIFESTS)) as pool:
        copied: list[Future[Took]] = [
            pool.submit(_copy_manifests, go, each, unfinished / each.name) for each in MANIFESTS
        ]
        tooks = [each.result() for each in copied]
    unfinished.rename(cache / manifests_folder_name())
    wall_s, core_s = max(took.wall_s for took in tooks), sum(took.core_s for took in tooks)
    _tell(say, "manifests", Took(wall_s=wall_s, core_s=core_s, output=""))


def _copy_manifests(go: Go, manifests: Manifests, folder: Path) -> Took:
    wanted = f"{manifests.module}@{manifests.version}"
    took = go.fetch("mod", "download", "-json", wanted, folder=go.workplace)
    module = Path(json.loads(took.output)["Dir"])
    for pattern in manifests.patterns:
        found = sorted(module.glob(pattern))
        if not found:
            raise BuildError(f"{wanted} has no file {pattern}")
        for path in found:
            target = folder / path.relative_to(module)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    return took


def _is_there(cache: Path, program: Program) -> bool:
    return (cache / program.folder_name()).is_dir()


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _refuse_full_disk(cache: Path) -> None:
    free_bytes = shutil.disk_usage(cache).free
    if free_bytes < _ROOM_BYTES:
        raise BuildError(
            f"{cache}: {free_bytes / 1e9:.1f} GB are free, {_ROOM_BYTES / 1e9:.0f} GB are needed\n"
            "  hint: make room, or name another folder: BROADGAUGE_CACHE=/path"
        )


def _tell(say: Say, name: str, took: Took) -> None:
    if took.wall_s:
        say(f"{name:<18}{took.wall_s:>7.0f} s wall{took.core_s:>7.0f} s core")


def available_cores() -> int:
    return len(os.sched_getaffinity(0))
