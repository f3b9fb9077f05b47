"""Where is what `make control-plane` built, and what is missing here?"""

from itertools import chain
from pathlib import Path

from scripts.control_plane.recipes import BUILDS, Schemas, cache_folder, missing


def reason_missing() -> str | None:
    """Why there can be no control plane here; None where there can."""
    cache = cache_folder()
    lacking = ", ".join(each.folder_name() for each in missing(cache))
    return f"{cache} lacks {lacking}: make control-plane" if lacking else None


def program(name: str) -> Path:
    """FileNotFoundError that says what to run, where it is missing."""
    if reason := reason_missing():
        raise FileNotFoundError(reason)
    (folder,) = (
        cache_folder() / build.folder_name()
        for build in BUILDS
        if name in chain(build.programs, *build.links.values())
    )
    return folder / name


def manifests(module: str) -> Path:
    """The copied files of a Go module, as its own tree has them."""
    (folder,) = (
        cache_folder() / build.folder_name() for build in BUILDS if module in build.manifests
    )
    return folder / "manifests" / module


def schemas(wanted: Schemas) -> list[Path]:
    """The copied files of a release of which nothing runs."""
    return sorted((cache_folder() / wanted.folder_name()).rglob("*.yaml"))
