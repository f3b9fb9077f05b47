"""What is the spawner told of one container: everything that it needs, as plain JSON."""

import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kubernetes.kubelet import cgroups
from tests.kubernetes.kubelet.attach import is_function_of
from tests.kubernetes.kubelet.config import Image, KubeletConfig, NodeSpec
from tests.kubernetes.kubelet.dns import host_name, hosts_file, resolv_conf
from tests.kubernetes.kubelet.environment import (
    ConfigError,
    FetchObject,
    command_line,
    container_environment,
    expand,
    quantity,
)
from tests.kubernetes.kubelet.fabric import DNS_ADDRESS
from tests.kubernetes.kubelet.sandbox import Sandbox
from tests.kubernetes.kubelet.security import Identity, identity
from tests.kubernetes.kubelet.volumes import PodVolumes

Json = dict[str, Any]
_SHM_BYTES = 64 << 20
"""Of /dev/shm in a container. Source: the runtimes' default."""
_NSSWITCH = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
_NSLOOKUP = '#!/bin/sh\nexec getent ahostsv4 "$1"\n'
"""For init containers that wait for a name in an image that has busybox: exit status as there."""


@dataclass(kw_only=True)
class PodPlace:
    """What containers of one pod share."""

    pod: Json
    namespace: Json | None
    node: NodeSpec
    sandbox: Sandbox
    volumes: PodVolumes
    folder: Path
    log_folder: Path
    fetch: FetchObject
    config: KubeletConfig


def find_image(config: KubeletConfig, name: str) -> Image:
    return config.images.get(name, config.default_image)


def container_order(place: PodPlace, container: Json, launch: int) -> tuple[Json, str | None]:
    """The order and the container's memory cgroup. Raises ConfigError."""
    image = find_image(place.config, container["image"])
    who = identity(container, place.pod, place.namespace, image)
    env = _environment(place, container, image, who)
    argv = command_line(container, env, (image.entrypoint, image.command))
    if not argv:
        raise ConfigError("no command specified")
    cgroup, procs = _memory(place, container, launch)
    scratch = place.folder / "roots" / f"{container['name']}-{launch}"
    scratch.mkdir(parents=True, exist_ok=True)
    config = place.config
    order = {
        "id": uuid.uuid4().hex,
        "argv": argv,
        "env": env,
        "cwd": expand(container.get("workingDir") or image.working_dir, env),
        "root": image.root,
        "shared_folders": [str(one) for one in config.shared_folders] * (image.root == "/"),
        "scratch": str(scratch),
        "hostname": place.node.name
        if place.pod["spec"].get("hostNetwork")
        else host_name(place.pod),
        "mounts": [
            *_files(place, container, image),
            *place.volumes.mounts(container, env),
        ],
        "shm_bytes": _SHM_BYTES,
        "read_only_root": who.read_only_root,
        "uid": who.uid,
        "gid": who.gid,
        "groups": list(who.groups),
        "capabilities": list(who.capabilities),
        "no_new_privileges": who.no_new_privileges,
        "rlimits": {"RLIMIT_MEMLOCK": config.memlock_bytes, "RLIMIT_CORE": 0},
        "cores": list(place.node.cores or ()),
        "cgroups": procs,
        "log_folder": str(place.log_folder / container["name"] / str(launch)),
        "log_max_bytes": config.log_max_bytes,
        "log_max_files": config.log_max_files,
    }
    return order, cgroup


def _environment(place: PodPlace, container: Json, image: Image, who: Identity) -> dict[str, str]:
    """The image's, then what a runtime sets, then the container's."""
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **image.env}
    env["HOSTNAME"] = host_name(place.pod)
    env.setdefault("HOME", "/root" if who.uid == 0 else "/")
    for resource, links in place.sandbox.allocated.items():
        name = "".join(sign if sign.isalnum() else "_" for sign in resource).upper()
        functions = [link.pci_address for link in links if is_function_of(link, resource)]
        env[f"PCIDEVICE_{name}"] = ",".join(functions)
    return env | container_environment(container, place.pod, place.fetch)


def _files(place: PodPlace, container: Json, image: Image) -> list[Json]:
    """The kubelet's own files in every container."""
    pod, folder = place.pod, place.folder / "etc"
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "/etc/hosts": hosts_file(pod, place.sandbox.ip),
        "/etc/hostname": host_name(pod) + "\n",
        "/etc/resolv.conf": resolv_conf(pod["metadata"]["namespace"], DNS_ADDRESS, pod["spec"]),
    }
    if image.root == "/":
        texts["/etc/nsswitch.conf"] = _NSSWITCH
        if shutil.which("nslookup") is None:
            texts["/usr/local/bin/nslookup"] = _NSLOOKUP
    found = []
    for target, text in texts.items():
        path = folder / Path(target).name
        if not path.exists():
            path.write_text(text)
            path.chmod(0o755 if target.endswith("nslookup") else 0o644)
        found.append({"source": str(path), "target": target, "read_only": False})
    message = termination_log(place, container)
    message.write_text("")
    message.chmod(0o666)
    target = container.get("terminationMessagePath") or "/dev/termination-log"
    return [*found, {"source": str(message), "target": target, "read_only": False}]


def termination_log(place: PodPlace, container: Json) -> Path:
    """Where a container's last words are read from."""
    return place.folder / "etc" / f"termination-{container['name']}"


def _memory(place: PodPlace, container: Json, launch: int) -> tuple[str | None, list[str]]:
    limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    if limit is None:
        return None, []
    prefix = cgroups.own_prefix(place.config.folder)
    name = f"{prefix}{place.pod['metadata']['uid']}-{container['name']}-{launch}"
    cgroup = cgroups.make(name, int(quantity(limit)))
    if cgroup is None:
        return None, []
    return os.fspath(cgroup.folder), [os.fspath(cgroup.procs)]
