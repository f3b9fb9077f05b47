"""What does the first process of a pod's container do before ranks are started, and how do they
differ from it?"""

import resource
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from broadgauge.agent.hardware.tree import Tree
from broadgauge.agent.pod.topology import topology_words
from broadgauge.messages.pod_log import say
from broadgauge.messages.pod_start import NoPlaceError

TERMINATION_LOG = "dev/termination-log"
"""Source: Kubernetes API reference, Container, terminationMessagePath."""
OWN_VARIABLES = frozenset({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"})
"""Operators set these for a job's pods; torchrun sets its ranks' own."""


def without_launchers(variables: Mapping[str, str]) -> dict[str, str]:
    """What an operator has set for another launcher is not our ranks'."""
    return {
        name: value
        for name, value in variables.items()
        if name not in OWN_VARIABLES and not name.startswith("PET_")
    }


def prepare_folder(folder: Path, files: "Path | None", subfolder: str) -> Path:
    """Where the command runs: ranks may write there, so what was sent is copied. Raises
    NoPlaceError."""
    try:
        if files is not None:
            _copy(files, folder)
        place = folder / subfolder
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoPlaceError(f"{folder} can't be made: {error.strerror or error}") from error
    return place


def _copy(source: Path, target: Path) -> None:
    """Contents alone: a ConfigMap's folder has links to hidden ones, and attributes of its own that
    may not be set elsewhere. Raises OSError."""
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.name.startswith(".."):
            continue
        if path.is_dir():
            _copy(path, target / path.name)
        else:
            shutil.copyfile(path, target / path.name)


def allow_locked_memory() -> None:
    """As much as may be, which ranks inherit: RDMA pins what it sends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))


def leave_reason(root: Path, text: str) -> None:
    """Where `kubectl describe pod` shows it; only where the kubelet has made the file."""
    with suppress(OSError), (root / TERMINATION_LOG).open("r+") as file:
        file.write(text)


def say_topology(path: str, tree: Tree) -> None:
    """Which of its devices are here: where they aren't, NCCL would not say so."""
    if not path:
        return
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        say(f"NCCL_TOPO_FILE={path} can't be read: {error.strerror or error}")
    else:
        devices = tree.names("/sys/bus/pci/devices")
        say(f"NCCL_TOPO_FILE={path}: {topology_words(content, devices)}")
