"""go.mod and go.sum, written anew from the versions in recipes.py.

k8s.io/kubernetes requires its own libraries at v0.0.0, which only its repository can serve; each is
replaced by the release that belongs to it.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from scripts.control_plane.building import WORKPLACE, Say, only_one_build
from scripts.control_plane.go_tool import Go, find_go
from scripts.control_plane.recipes import BUILDS, OLDEST_GO, Build

_KUBERNETES = "k8s.io/kubernetes"
_UNRELEASED = re.compile(r"^\s+(k8s\.io/\S+) v0\.0\.0$", re.MULTILINE)


def lock(cache: Path, say: Say) -> None:
    """Writes both files of each build; the next one makes its programs anew."""
    workplace = cache / WORKPLACE
    workplace.mkdir(parents=True, exist_ok=True)
    with only_one_build(cache, say):
        go, _ = find_go(cache, workplace)
        for build in BUILDS:
            folder = workplace / "lock"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for source in build.folder.glob("*.go"):
                shutil.copy(source, folder)
            (folder / "go.mod").write_text("\n".join(go_mod_lines(go, build)) + "\n")
            go.fetch(f"modules of {build.name}", "mod", "tidy", folder=folder)
            for name in ("go.mod", "go.sum"):
                shutil.copy(folder / name, build.folder)
            say(f"wrote {build.folder}/go.mod and go.sum")


def go_mod_lines(go: Go, build: Build) -> Iterator[str]:
    """What `go mod tidy` completes."""
    major, minor = OLDEST_GO
    yield from (f"module broadgauge.test/{build.name}", "", f"go {major}.{minor}.0", "")
    yield "require ("
    yield from (f"\t{module} {version}" for module, version in build.requires.items())
    yield from (")", "", "tool (")
    yield from (f"\t{package}" for package in build.programs.values() if package != ".")
    yield from (")", "", "replace (")
    if version := build.requires.get(_KUBERNETES):
        library_version = version.replace("v1.", "v0.", 1)
        for library in unreleased_libraries(go, version):
            yield f"\t{library} => {library} {library_version}"
    yield ")"


def unreleased_libraries(go: Go, version: str) -> list[str]:
    """Those that k8s.io/kubernetes requires at v0.0.0."""
    wanted = f"{_KUBERNETES}@{version}"
    took = go.fetch(wanted, "mod", "download", "-json", wanted, folder=go.workplace)
    return _UNRELEASED.findall(Path(json.loads(took.output)["GoMod"]).read_text())
