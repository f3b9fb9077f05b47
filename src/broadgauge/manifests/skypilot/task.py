"""What is a task of SkyPilot, as its YAML has it?

Source: SkyPilot 0.14.1, `get_task_schema`, `get_resources_schema`, `get_storage_schema`; every file
that is rendered in tests is read by SkyPilot's own `Task.from_yaml`.
"""

import math
import posixpath
from dataclasses import dataclass
from typing import Any

from broadgauge.manifests.skypilot.budget import node_price
from broadgauge.manifests.skypilot.clusters import ClusterKey
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.skypilot import FileMount, Skypilot


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """Of which cluster, and what runs on it."""

    experiment: Experiment
    key: ClusterKey
    name: str
    setup: str
    run: str
    base_folder: str = ""
    """Absolute: what paths of this machine are relative to. Empty: they stay as they are."""


def task(request: TaskRequest) -> Manifest:
    """The whole task."""
    settings = request.experiment.skypilot
    has_own_files = settings.workdir is not None
    return {
        "name": request.name,
        **({"workdir": _path(settings.workdir or "", request)} if has_own_files else {}),
        "num_nodes": request.key.nodes,
        "resources": resources(request.experiment, request.key),
        **({"envs": dict(settings.envs)} if settings.envs else {}),
        # No value: `sky launch --secret NAME` takes it from the environment.
        **({"secrets": dict.fromkeys(settings.secrets)} if settings.secrets else {}),
        **_mounts(settings, request),
        **_volumes(settings),
        "setup": request.setup,
        "run": request.run,
    }


def bare_task(request: TaskRequest) -> Manifest:
    """The machines alone, with nothing to send or run: so that their autodown is set first."""
    settings = request.experiment.skypilot
    return {
        "name": request.name,
        "num_nodes": request.key.nodes,
        "resources": resources(request.experiment, request.key),
        **_volumes(settings),
    }


def resources(experiment: Experiment, key: ClusterKey) -> dict[str, Any]:
    """Of each node. Where the cost is limited, SkyPilot takes no machine that costs more."""
    settings = experiment.skypilot
    plain = {
        "infra": settings.infra,
        "accelerators": settings.accelerators,
        "instance_type": settings.instance_type,
        "cpus": settings.cpus,
        "memory": settings.memory,
        "network_tier": "best" if key.network_tier == "best" else None,
        "disk_tier": settings.disk_tier,
        "disk_size": settings.disk_size,
        "image_id": settings.image_id,
        "use_spot": True if settings.use_spot else None,
        "max_hourly_cost": _most_usd_per_hour(experiment),
        "autostop": {
            "idle_minutes": settings.idle_minutes,
            "down": True,
            "wait_for": "jobs",
        },
    }
    return {name: value for name, value in plain.items() if value is not None}


def _most_usd_per_hour(experiment: Experiment) -> float | None:
    price = node_price(experiment)
    if experiment.skypilot.max_cost_usd is None or price is None:
        return None
    return math.ceil(price.usd_per_node_hour * 100) / 100


def _mounts(settings: Skypilot, request: TaskRequest) -> Manifest:
    mounts = {path: _mount(settings.file_mounts[path], request) for path in settings.file_mounts}
    return {"file_mounts": mounts} if mounts else {}


def _mount(mount: FileMount, request: TaskRequest) -> str | dict[str, Any]:
    if mount.mode == "COPY" and mount.store is None:
        return mount.source if "://" in mount.source else _path(mount.source, request)
    cached = {} if mount.mount_cached is None else mount.mount_cached.model_dump(exclude_none=True)
    return {
        "source": mount.source if "://" in mount.source else _path(mount.source, request),
        **({} if mount.store is None else {"store": mount.store}),
        "mode": mount.mode,
        **({"config": {"mount_cached": cached}} if cached else {}),
    }


def _volumes(settings: Skypilot) -> Manifest:
    return {"volumes": dict(settings.volumes)} if settings.volumes else {}


def _path(path: str, request: TaskRequest) -> str:
    if not request.base_folder or path.startswith("~"):
        return path
    return posixpath.normpath(posixpath.join(request.base_folder, path))
