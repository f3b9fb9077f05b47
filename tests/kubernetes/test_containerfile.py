"""Does the Containerfile build, and do pods of its image train as any user?

Its base is made by mmdebstrap of Debian's packages, since no registry can be reached. torch's
wheels are left out of the build, being some GB: a small package of the lock stands for them, and
this checkout's own torch is put beside it by hard links.
"""

import json
import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.operators import Operators
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import Fabric, Image, KubeletConfig, NodeSpec
from tests.kubernetes.test_runs import ANY_UID, User

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.images,
    pytest.mark.root,
    pytest.mark.namespaces,
    pytest.mark.measuring,
    pytest.mark.thorough,
]
REPOSITORY = Path(__file__).parents[2]
SMALL = "typing-extensions"
"""Of what torch needs, a package without others."""
SUITE = "bookworm"
PYTHON_PACKAGES = "python3,python3-pip,libstdc++6,ca-certificates"
"""`slim` images of Python have libstdc++ through apt, and torch needs it."""
TAG = "localhost/broadgauge:test"
NODES = ("image-0", "image-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """buildah with a storage of its own, as root and without a daemon."""

    folder: Path

    def __call__(self, *words: str) -> str:
        storage = ["--root", str(self.folder / "s"), "--runroot", str(self.folder / "r")]
        command = ["buildah", *storage, "--storage-driver", "vfs", *words]
        ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout.strip()

    def add_base(self) -> None:
        """An image of Debian's Python, as a registry would have it."""
        listed = ["apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)"]
        lines = subprocess.run(
            [*listed, "Created-By: Packages"], capture_output=True, text=True, check=True
        ).stdout
        (self.folder / "sources.list").write_text(lines)
        archive = self.folder / "base.tar"
        make = ["mmdebstrap", "--quiet", "--variant=essential", f"--include={PYTHON_PACKAGES}"]
        subprocess.run([*make, SUITE, str(archive), str(self.folder / "sources.list")], check=True)
        empty = self("from", "scratch")
        self("add", "--quiet", empty, str(archive), "/")
        self("commit", "--quiet", "--rm", empty, "localhost/base")

    def build(self) -> dict[str, Any]:
        """The Containerfile's image on that base; its configuration."""
        wheels = self.folder / "wheels"
        download = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels)]
        python = Path(sysconfig.get_path("scripts")) / "python"
        subprocess.run([str(python), *download, f"{SMALL}=={locked(SMALL)}"], check=True)
        options = "--no-index --find-links /wheels --break-system-packages"
        arguments = {"BASE": "localhost/base", "TORCH": SMALL, "PIP_OPTIONS": options}
        told = [
            word for key, text in arguments.items() for word in ("--build-arg", f"{key}={text}")
        ]
        mounted = ["--volume", f"{wheels}:/wheels:ro"]
        self("build", "--isolation", "chroot", *told, *mounted, "--tag", TAG, ".")
        inspected = json.loads(self("inspect", "--type", "image", TAG))
        config: dict[str, Any] = inspected["OCIv1"]["config"]
        return config


def locked(package: str) -> str:
    """Its version in the lock that the Containerfile reads."""
    text = (REPOSITORY / "requirements/all.lock").read_text()
    (version,) = re.findall(rf"^{re.escape(package)}==(\S+)", text, re.MULTILINE)
    return str(version)


def all_that_it_needs(name: str, extras: frozenset[str], seen: set[str]) -> set[str]:
    """Names of a package and of its dependencies here, those of the extras that are asked for."""
    if name in seen and not extras:
        return seen
    seen.add(name)
    for text in requires(name) or ():
        wanted = Requirement(text)
        asked = [{"extra": extra} for extra in ("", *extras)]
        if wanted.marker is None or any(map(wanted.marker.evaluate, asked)):
            all_that_it_needs(wanted.name, frozenset(wanted.extras), seen)
    return seen


def link_torch(packages: Path) -> None:
    """This checkout's torch, and all that it needs, without copying its bytes."""
    site = Path(sysconfig.get_path("purelib"))
    for name in all_that_it_needs("torch", frozenset(), set()):
        for file in distribution(name).files or ():
            source, target = site / file, packages / file
            if ".." in file.parts or not source.is_file() or target.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(source, target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The image, and its root file system."""

    root: Path
    config: dict[str, Any]

    @property
    def env(self) -> dict[str, str]:
        return dict(text.split("=", 1) for text in self.config["Env"])


@pytest.fixture(scope="module")
def built() -> Iterator[Built]:
    """On the file system of the checkout, for hard links; removed at the end."""
    folder = REPOSITORY / ".pytest_cache" / f"image-{os.getpid()}"
    folder.mkdir(parents=True)
    buildah = Builder(folder=folder)
    try:
        buildah.add_base()
        config = buildah.build()
        root = Path(buildah("mount", buildah("from", TAG)))
        yield Built(root=root, config=config)
    finally:
        buildah("rm", "--all")
        buildah("rmi", "--all", "--force")
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_the_image_is_for_any_user_and_holds_no_program_of_ours(built: Built) -> None:
    assert built.config["User"] == "1001:0"
    assert built.config["WorkingDir"] == "/workspace"
    assert built.config["Labels"]["org.opencontainers.image.title"] == "broadgauge"
    for folder in (built.env["HOME"], "/workspace"):
        there = (built.root / folder.lstrip("/")).stat()
        assert (there.st_gid, there.st_mode & 0o070) == (0, 0o070), folder
    assert not list(built.root.glob("tmp/*"))
    packages = {path.name for path in built.root.glob("usr/local/lib/python3*/dist-packages/*")}
    assert f"typing_extensions-{locked(SMALL)}.dist-info" in packages
    assert not any("broadgauge" in name for name in packages)


def test_pods_of_the_image_measure(
    built: Built,
    control_plane: ControlPlane,
    operators: Operators,
    namespace: str,
    tmp_path: Path,
) -> None:
    """Two pods that see its root file system and nothing of this machine's."""
    del operators
    (packages,) = built.root.glob("usr/local/lib/python3*/dist-packages")
    link_torch(packages)
    config = KubeletConfig(
        kubeconfig=control_plane.kubeconfig(),
        folder=tmp_path / "k",
        nodes=[NodeSpec(name=name, labels={"image": "ours"}) for name in NODES],
        pod_network=Fabric(name="pods", rate_gbps=1.0),
        images={TAG: Image(root=str(built.root), env=built.env, user=ANY_UID)},
    )
    with control_plane.client() as cluster, Kubelet.start(config):
        user = User(
            folder=tmp_path,
            kubeconfig=control_plane.kubeconfig(),
            namespace=namespace,
            cluster=cluster,
        )
        user.write(kubernetes={"image": TAG, "node_selector": {"image": "ours"}}, launches=1)
        output = user.run()
        [record] = user.records()
        assert record["status"] == "ok", output
        (environment,) = (user.run_folder / "environments").iterdir()
        assert not record["error"], output
        assert str(built.root) not in environment.read_text()
        assert user.left() == []
