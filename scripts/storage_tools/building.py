"""What is missing in the cache, built; modules of one program come while another compiles."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.control_plane import recipes as control_plane
from scripts.control_plane.building import WORKPLACE, only_one_build
from scripts.control_plane.go_tool import BuildError, Go, Took, install_go
from scripts.storage_tools.recipes import Program, missing

_ROOM_BYTES = 3 * 10**9
"""Free on the cache's file system before anything is built."""

Say = Callable[[str], None]


def build(cache: Path, *, jobs: int, keep: bool, say: Say) -> None:
    """Makes what is missing; folders whole or not at all."""
    cache.mkdir(parents=True, exist_ok=True)
    with only_one_build(cache, say):
        lacking = missing(cache.resolve())
        if not lacking:
            say("all is there")
            return
        free_bytes = shutil.disk_usage(cache).free
        if free_bytes < _ROOM_BYTES:
            raise BuildError(
                f"{cache}: {free_bytes / 1e9:.1f} GB are free, {_ROOM_BYTES / 1e9:.0f} GB needed\n"
                "  hint: make room, or name another folder: BROADGAUGE_CACHE=/path"
            )
        workplace = cache / WORKPLACE
        workplace.mkdir(exist_ok=True)
        go = shared_go(workplace, say)
        with ThreadPoolExecutor(max_workers=1) as beside:
            downloads = [beside.submit(_download, go, each) for each in lacking]
            for program, download in zip(lacking, downloads, strict=True):
                download.result()
                _tell(say, program.name, _build_program(go, cache, program, jobs=jobs))
        if not keep:
            shutil.rmtree(workplace)


def shared_go(workplace: Path, say: Say) -> Go:
    """The control plane's Go, which is installed once for both."""
    cache = control_plane.cache_folder()
    root = cache / f"go-{control_plane.GO_VERSION}"
    if not root.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with only_one_build(cache, say):
            _, took = install_go(cache, workplace)
            _tell(say, "go", took)
    return Go(root=root / "go", workplace=workplace)


def _download(go: Go, program: Program) -> Took:
    return go.fetch("list", "-deps", "-f", "", program.package, folder=program.module)


def _build_program(go: Go, cache: Path, program: Program, *, jobs: int) -> Took:
    """Compiles and links it, and lets `bin` name it."""
    unfinished = go.workplace / program.name
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    place = ["-o", str(unfinished / program.name), program.package]
    took = go.run("build", f"-p={jobs}", *program.flags(), *place, folder=program.module)
    folder = cache.resolve() / program.folder_name()
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    link = cache / "bin" / program.name
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(folder / program.name)
    return took


def _tell(say: Say, name: str, took: Took) -> None:
    say(f"{name:<18}{took.wall_s:>7.0f} s wall{took.core_s:>7.0f} s core")
