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
from scripts.control_plane.go_tool import Go, install_go
from scripts.control_plane.recipes import (
    GO_MODULE,
    JOBSET_VERSION,
    KUBERNETES_VERSION,
    PROGRAMS,
    TRAINER_VERSION,
    TRAINING_OPERATOR_VERSION,
)

_OLDEST_GO = "1.24.0"
"""What the go.mod of Kubernetes 1.34 asks for."""
_UNRELEASED = re.compile(r"^\s+(k8s\.io/\S+) v0\.0\.0$", re.MULTILINE)


def lock(cache: Path, say: Say) -> None:
    """Writes both files; the next build makes all programs anew."""
    workplace = cache / WORKPLACE
    workplace.mkdir(parents=True, exist_ok=True)
    with only_one_build(cache, say):
        go, _ = install_go(cache, workplace)
        folder = workplace / "lock"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copy(GO_MODULE / "main.go", folder)
        (folder / "go.mod").write_text("\n".join(go_mod_lines(go)) + "\n")
        go.fetch("mod", "tidy", folder=folder)
        for name in ("go.mod", "go.sum"):
            shutil.copy(folder / name, GO_MODULE)
    say(f"wrote {GO_MODULE}/go.mod and go.sum")


def go_mod_lines(go: Go) -> Iterator[str]:
    """What `go mod tidy` completes."""
    yield from ("module broadgauge.test/controlplane", "", f"go {_OLDEST_GO}", "")
    yield from ("require (", f"\tk8s.io/kubernetes v{KUBERNETES_VERSION}")
    yield f"\tgithub.com/kubeflow/training-operator v{TRAINING_OPERATOR_VERSION}"
    yield f"\tgithub.com/kubeflow/trainer/v2 v{TRAINER_VERSION}"
    yield from (f"\tsigs.k8s.io/jobset v{JOBSET_VERSION}", ")", "", "tool (")
    yield from (f"\t{each.package}" for each in PROGRAMS if each.package != ".")
    yield from (")", "", "replace (")
    library_version = KUBERNETES_VERSION.replace("1.", "v0.", 1)
    for library in unreleased_libraries(go):
        yield f"\t{library} => {library} {library_version}"
    yield ")"


def unreleased_libraries(go: Go) -> list[str]:
    """Those that k8s.io/kubernetes requires at v0.0.0."""
    wanted = f"k8s.io/kubernetes@v{KUBERNETES_VERSION}"
    took = go.fetch("mod", "download", "-json", wanted, folder=go.workplace)
    return _UNRELEASED.findall(Path(json.loads(took.output)["GoMod"]).read_text())
