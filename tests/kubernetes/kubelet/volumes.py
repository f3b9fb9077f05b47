"""What do a pod's volumes hold, and where do containers see them?

ConfigMaps, Secrets, downward files and tokens are folders with the kubelet's `..data` link, so
that all files change at once. Source: Kubernetes, "Volumes" and "Projected volumes"; the
AtomicWriter of pkg/volume/util.
"""

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.kubernetes.kubelet.environment import (
    ConfigError,
    FetchObject,
    bytes_data,
    expand,
    field_of_pod,
    quantity,
    resource_of_container,
)
from tests.kubernetes.kubelet.ownership import give_group

from broadgauge.agent.emulated.syscalls import MountFlag, mount, umount

Json = dict[str, Any]
Files = dict[str, tuple[bytes, int]]
"""Relative path to content and mode."""
FetchToken = Callable[[Json], str]
"""Given a serviceAccountToken projection, its token."""
WRITTEN = ("configMap", "secret", "downwardAPI", "projected")


class ClaimFolder(NamedTuple):
    """Where a bound claim's volume is."""

    path: Path
    takes_group: bool
    """As a volume of a driver whose fsGroupPolicy is File; a hostPath takes none."""


class MountError(Exception):
    """A volume can't be set up yet; the text is the message of FailedMount."""


@dataclass(kw_only=True)
class PodVolumes:
    """The volumes of one pod, in a folder of this machine."""

    folder: Path
    pod: Json
    fetch: FetchObject
    fetch_token: FetchToken
    claim_folder: Callable[[str], ClaimFolder]
    """Of a PersistentVolumeClaim; raises MountError."""
    group: int | None
    """fsGroup."""
    group_policy: str | None = None
    """fsGroupChangePolicy."""
    allow_host_path: bool = False

    def set_up(self) -> None:
        """Make all that are not there. Raises MountError."""
        for volume in self.pod["spec"].get("volumes") or ():
            path = self.path(volume["name"])
            kind = next(key for key in volume if key != "name")
            if kind in WRITTEN:
                path.mkdir(parents=True, exist_ok=True)
                write_atomically(path, self._files(volume, kind), self.group)
            elif kind == "emptyDir":
                if not path.exists():
                    self._make_empty(path, volume["emptyDir"] or {})
            elif kind == "persistentVolumeClaim":
                claim = self.claim_folder(volume[kind]["claimName"])
                if claim.takes_group and not volume[kind].get("readOnly"):
                    self._own_group(claim.path)
            elif kind == "hostPath":
                self._check_host_path(volume)
            else:
                raise MountError(f'MountVolume.SetUp failed for volume "{volume["name"]}" : {kind} '
                                 "is not known to the process kubelet")  # fmt: skip

    def refresh(self) -> None:
        """Write again what came from ConfigMaps, Secrets and the pod's own fields."""
        for volume in self.pod["spec"].get("volumes") or ():
            kind = next(key for key in volume if key != "name")
            if kind in WRITTEN and self.path(volume["name"]).exists():
                write_atomically(self.path(volume["name"]), self._files(volume, kind), self.group)

    def tear_down(self) -> None:
        """Unmount what is memory and remove the folder; claims' folders stay."""
        for volume in self.pod["spec"].get("volumes") or ():
            path = self.path(volume["name"])
            if (volume.get("emptyDir") or {}).get("medium") == "Memory" and path.is_mount():
                umount(str(path), 2)
        shutil.rmtree(self.folder, ignore_errors=True)

    def mounts(self, container: Json, variables: Mapping[str, str]) -> list[Json]:
        """The bind mounts of a container, outer folders first."""
        volumes = {one["name"]: one for one in self.pod["spec"].get("volumes") or ()}
        found = []
        for one in container.get("volumeMounts") or ():
            volume = volumes[one["name"]]
            source, read_only = self._source(volume)
            inner = one.get("subPath") or expand(one.get("subPathExpr") or "", variables)
            if inner:
                if ".." in Path(inner).parts or Path(inner).is_absolute():
                    raise ConfigError(f'failed to prepare subPath for volumeMount "{one["name"]}"')
                source = self._inner(source, inner, volume)
            found.append(
                {
                    "source": os.path.realpath(source) if inner else str(source),
                    "target": one["mountPath"],
                    "read_only": bool(one.get("readOnly")) or read_only,
                }
            )
        return sorted(found, key=lambda one: one["target"].count("/"))

    def path(self, name: str) -> Path:
        return self.folder / "volumes" / name

    def _source(self, volume: Json) -> tuple[Path, bool]:
        if claim := volume.get("persistentVolumeClaim"):
            return self.claim_folder(claim["claimName"]).path, bool(claim.get("readOnly"))
        if host := volume.get("hostPath"):
            return Path(host["path"]), False
        return self.path(volume["name"]), any(kind in volume for kind in WRITTEN)

    def _inner(self, source: Path, inner: str, volume: Json) -> Path:
        """A subPath that isn't there is made, as a folder with its volume's mode, where that can be
        written; a group that the volume was given comes with its setgid bit."""
        path = source / inner
        if not any(kind in volume for kind in WRITTEN):
            mode = source.stat().st_mode & 0o777
            inside = Path(inner)
            for part in reversed([inside, *inside.parents[:-1]]):
                folder = source / part
                if not folder.exists():
                    folder.mkdir()
                    folder.chmod(folder.stat().st_mode & 0o2000 | mode)
        return path

    def _make_empty(self, path: Path, source: Json) -> None:
        path.mkdir(parents=True)
        if source.get("medium") == "Memory":
            limit = source.get("sizeLimit")
            size = f",size={int(quantity(limit))}" if limit else ""
            mount(
                "tmpfs", str(path), "tmpfs", MountFlag.NOSUID | MountFlag.NODEV, f"mode=777{size}"
            )
        path.chmod(0o777)
        self._own_group(path)

    def _own_group(self, path: Path) -> None:
        if self.group is not None:
            give_group(path, self.group, self.group_policy)

    def _check_host_path(self, volume: Json) -> None:
        if not self.allow_host_path:
            raise MountError(
                f'MountVolume.SetUp failed for volume "{volume["name"]}" : hostPath is not allowed '
                "here (allow_host_path of the process kubelet)"
            )

    def _files(self, volume: Json, kind: str) -> Files:
        source = volume[kind]
        if kind == "projected":
            found: Files = {}
            for part in source.get("sources") or ():
                ((inner, what),) = part.items()
                found |= self._files_of(volume["name"], inner, what, source.get("defaultMode"))
            return found
        return self._files_of(volume["name"], kind, source, source.get("defaultMode"))

    def _files_of(self, name: str, kind: str, source: Json, mode: int | None) -> Files:
        mode = 0o644 if mode is None else mode
        if kind == "downwardAPI":
            return {one["path"]: (self._downward(one), one.get("mode", mode))
                    for one in source.get("items") or ()}  # fmt: skip
        if kind == "serviceAccountToken":
            return {source["path"]: (self.fetch_token(source).encode(), mode)}
        plural = "configmaps" if kind == "configMap" else "secrets"
        named = source.get("name") or source.get("secretName")
        found = self.fetch(plural, named)
        optional = bool(source.get("optional"))
        if found is None:
            if optional:
                return {}
            raise MountError(f'MountVolume.SetUp failed for volume "{name}" : '
                             f'{plural.removesuffix("s")} "{named}" not found')  # fmt: skip
        data = bytes_data(plural, found)
        if not source.get("items"):
            return {key: (content, mode) for key, content in data.items()}
        files = {}
        for item in source["items"]:
            if item["key"] in data:
                files[item["path"]] = (data[item["key"]], item.get("mode", mode))
            elif not optional:
                raise MountError(f'MountVolume.SetUp failed for volume "{name}" : references '
                                 f"non-existent {kind.lower()} key: {item['key']}")  # fmt: skip
        return files

    def _downward(self, item: Json) -> bytes:
        if "fieldRef" in item:
            return field_of_pod(self.pod, item["fieldRef"]["fieldPath"]).encode()
        first = self.pod["spec"]["containers"][0]
        return resource_of_container(item["resourceFieldRef"], first, self.pod).encode()


def write_atomically(folder: Path, files: Files, group: int | None) -> None:
    """Write all files of a volume so that readers see either the old ones or the new ones."""
    data = folder / "..data"
    if _as_written(data) == {path: content for path, (content, _) in files.items()}:
        return
    stamp = time.strftime("..%Y_%m_%d_%H_%M_%S.") + str(time.monotonic_ns())
    fresh = folder / stamp
    for path, (content, mode) in files.items():
        target = fresh / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(mode | (0o440 if group is not None else 0))
        if group is not None:
            os.chown(target, -1, group)
    fresh.mkdir(exist_ok=True)
    before = data.resolve() if data.exists() else None
    temporary = folder / "..data_tmp"
    temporary.symlink_to(stamp)
    temporary.rename(data)
    tops = {path.partition("/")[0] for path in files}
    for top in tops:
        link = folder / top
        if not link.is_symlink():
            link.symlink_to(f"..data/{top}")
    for link in folder.iterdir():
        if link.is_symlink() and not link.name.startswith("..") and link.name not in tops:
            link.unlink()
    if before is not None:
        shutil.rmtree(before)


def _as_written(data: Path) -> dict[str, bytes] | None:
    if not data.exists():
        return None
    root = data.resolve()
    return {
        str(one.relative_to(root)): one.read_bytes() for one in root.rglob("*") if one.is_file()
    }
