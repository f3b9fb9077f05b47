"""Which kinds beyond its own does the API server know, by the schemas of whose releases?"""

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.waiting import wait_until

FOLDERS = {
    "training-operator": "manifests/base/crds",
    "trainer": "manifests/base/crds",
    "jobset": "config/components/crd/bases",
    "kueue": "config/components/crd/bases",
    "network-attachments": "artifacts",
    "sriov": "config/crd/bases",
    "whereabouts": "doc/crds",
    "volcano": "config/crd/volcano/bases",
    "network-operator": "config/crd/bases",
    "gpu-operator": "config/crd/bases",
    "openshift": "payload-manifests/crds",
}
"""By whose they are (scripts/control_plane/recipes.py has the versions), in a release's files."""
OF_JOBS = ("training-operator", "trainer", "jobset", "kueue", "volcano")
OF_NETWORKS = ("network-attachments", "sriov", "whereabouts")
_COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NAME = re.compile(r"^metadata:\n(?:  .*\n)*?  name: (\S+)$", re.MULTILINE)
_ESTABLISH_S = 60.0
_NUM_AT_ONCE = 8
_GONE, _IS_THERE = httpx2.codes.NOT_FOUND, httpx2.codes.CONFLICT


def apply_crds(control_plane: ControlPlane, names: Sequence[str] = tuple(FOLDERS)) -> list[str]:
    """Installs all kinds of these releases and waits until they are served.

    Returns the definitions' names: `pytorchjobs.kubeflow.org`, …
    """
    texts = [path.read_text() for name in names for path in crd_files(control_plane, name)]
    with control_plane.http() as http, ThreadPoolExecutor(_NUM_AT_ONCE) as pool:
        applied = list(pool.map(lambda text: _create(http, text), texts))
        for name in applied:
            wait_until(
                lambda name=name: _is_served(http, name),
                limit_s=_ESTABLISH_S,
                what=f"{name} to be served",
            )
    return applied


def delete_crds(control_plane: ControlPlane, names: Iterable[str]) -> None:
    """By the names that `apply_crds` returned, with all objects of these kinds; waits for it."""
    wanted = set(names)
    with control_plane.http() as http:
        for name in wanted:
            http.delete(f"{_COLLECTION}/{name}").raise_for_status()
        for name in wanted:
            wait_until(
                lambda name=name: http.get(f"{_COLLECTION}/{name}").status_code == _GONE,
                limit_s=_ESTABLISH_S,
                what=f"{name} to be gone",
            )


def crd_files(control_plane: ControlPlane, name: str) -> list[Path]:
    """One definition each."""
    folder = control_plane.programs.manifests / name / FOLDERS[name]
    found = sorted(folder.glob("*.yaml"))
    assert found, f"{folder} is empty"
    return found


def _create(http: httpx2.Client, text: str) -> str:
    """Sends the file as it is: the largest has 600 kB, and nothing here needs to parse it."""
    found = _NAME.search(text)
    assert found is not None, text[:300]
    headers = {"Content-Type": "application/yaml"}
    response = http.post(_COLLECTION, headers=headers, content=text.encode())
    assert response.is_success or response.status_code == _IS_THERE, response.text
    return found[1]


def _is_served(http: httpx2.Client, name: str) -> bool:
    status = http.get(f"{_COLLECTION}/{name}").raise_for_status().json().get("status") or {}
    return any(
        (each["type"], each["status"]) == ("Established", "True")
        for each in status.get("conditions") or []
    )
