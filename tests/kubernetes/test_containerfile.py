"""Does the Containerfile build, and do pods of its image fetch, wait and train as any user?

Its base is made by mmdebstrap of Debian's packages, since a test reaches no registry of images. The
wheels of torch are left out of the build, being some GB: a small package of the lock stands for
them, and this checkout's own torch is put beside it by hard links.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from tests.agent.volume.pods import fetch_order
from tests.running.rendering.experiments import container_of, objects_of, rendered

from broadgauge.agent import bundle
from broadgauge.messages.codec import encode
from broadgauge.messages.prepare_order import VARIABLE, PrepareOrder
from broadgauge.probes.without_agent import BLOCK_WORD

pytestmark = [
    pytest.mark.images,
    pytest.mark.root,
    pytest.mark.measuring,
    pytest.mark.thorough,
]
REPOSITORY = Path(__file__).parents[2]
CACHE = Path(os.environ.get("BROADGAUGE_CACHE", Path.home() / ".cache" / "broadgauge"))
SMALL = "typing-extensions"
"""Of what torch needs, a package without others."""
SUITE = "bookworm"
PYTHON_PACKAGES = "python3,python3-pip,libstdc++6,ca-certificates"
"""`slim` images of Python have libstdc++ through apt, and torch needs it."""
TAG = "localhost/broadgauge:test"
ANY_USER = "1000660000:0"
"""As OpenShift gives one to a namespace: in no file of the image, and of group 0."""
EXPERIMENT = """
name: small
cluster: {shapes: [1x2], device: cpu}
networks: [{name: pod, kubernetes: pod}]
workloads:
  - {kind: collectives, ops: [all_reduce], sizes: [1 KiB], min_iterations: 2, budget_s: 1 ms}
launches: 1
trials_per_launch: 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buildah:
    """buildah with a storage of its own, as root and without a daemon."""

    folder: Path

    def __call__(self, *words: str) -> str:
        storage = ["--root", str(self.folder / "s"), "--runroot", str(self.folder / "r")]
        command = ["buildah", *storage, "--storage-driver", "vfs", *words]
        ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"{words}\n{ended.stdout}{ended.stderr}"
        return ended.stdout.strip()

    def add_base(self) -> None:
        """An image of Debian's Python, as a registry would have it."""
        empty = self("from", "scratch")
        self("add", "--quiet", empty, str(base_archive(self.folder)), "/")
        self("commit", "--quiet", "--rm", empty, "localhost/base")

    def build(self) -> dict[str, Any]:
        """The Containerfile's image on that base; its configuration."""
        wheels = self.folder / "wheels"
        download = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels)]
        subprocess.run([sys.executable, *download, f"{SMALL}=={locked(SMALL)}"], check=True)
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


def base_archive(scratch: Path) -> Path:
    """Of Debian's packages, kept by what is in it."""
    kept = CACHE / "images" / f"{SUITE}-{re.sub('[^a-z0-9]+', '-', PYTHON_PACKAGES)}.tar"
    if kept.is_file():
        return kept
    listed = ["apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)"]
    lines = subprocess.run(
        [*listed, "Created-By: Packages"], capture_output=True, text=True, check=True
    ).stdout
    sources = scratch / "sources.list"
    sources.write_text(lines)
    made = scratch / "base.tar"
    make = ["mmdebstrap", "--quiet", "--variant=essential", f"--include={PYTHON_PACKAGES}"]
    subprocess.run([*make, SUITE, str(made), str(sources)], check=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    growing = kept.with_suffix(f".{os.getpid()}")
    shutil.copyfile(made, growing)
    growing.replace(kept)
    return kept


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
    """The image, a container of it, and its root file system."""

    buildah: Buildah
    container: str
    root: Path
    config: dict[str, Any]

    @property
    def variables(self) -> dict[str, str]:
        return dict(text.split("=", 1) for text in self.config["Env"])

    def run(self, folder: Path, *words: str, **variables: str) -> str:
        """As a pod's process of any user, which has `folder` as /broadgauge; its log."""
        told = [word for name, text in variables.items() for word in ("--env", f"{name}={text}")]
        options = ["--isolation", "chroot", "--user", ANY_USER, "--volume", f"{folder}:/broadgauge"]
        return self.buildah("run", *options, *told, self.container, "--", *words)


@pytest.fixture(scope="module")
def built() -> Iterator[Built]:
    """On the file system of the checkout, for hard links; removed at the end."""
    folder = REPOSITORY / ".pytest_cache" / f"image-{os.getpid()}"
    folder.mkdir(parents=True)
    buildah = Buildah(folder=folder)
    try:
        buildah.add_base()
        config = buildah.build()
        container = buildah("from", TAG)
        root = Path(buildah("mount", container))
        yield Built(buildah=buildah, container=container, root=root, config=config)
    finally:
        buildah("rm", "--all")
        buildah("rmi", "--all", "--force")
        shutil.rmtree(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a pod finds in /broadgauge, for any user."""
    place = tmp_path / "broadgauge"
    for name in ("scratch", "case", "program", "storage"):
        (place / name).mkdir(parents=True)
        (place / name).chmod(0o777)
    return place


def test_the_image_is_for_any_user_and_holds_no_program_of_ours(built: Built) -> None:
    assert built.config["User"] == "1001:0"
    assert built.config["WorkingDir"] == "/workspace"
    assert built.config["Labels"]["org.opencontainers.image.title"] == "broadgauge"
    for place in (built.variables["HOME"], "/workspace"):
        there = (built.root / place.lstrip("/")).stat()
        assert (there.st_gid, there.st_mode & 0o070) == (0, 0o070), place
    assert not list(built.root.glob("tmp/*"))
    packages = {path.name for path in built.root.glob("usr/local/lib/python3*/dist-packages/*")}
    assert f"typing_extensions-{locked(SMALL)}.dist-info" in packages
    assert not any("broadgauge" in name for name in packages)


def test_a_pod_of_the_image_fetches_and_another_waits(built: Built, folder: Path) -> None:
    (folder / "source").mkdir()
    (folder / "source/a.bin").write_bytes(b"one")
    program = folder / "program" / "broadgauge.zip"
    part = fetch_order("/broadgauge/source", link="/broadgauge/storage/model")
    order = PrepareOrder(root="/broadgauge/storage/broadgauge", maker="it", fetched=(part,))
    told = {VARIABLE: json.dumps(encode(order))}
    for name, parts, words in (
        ("prepare", bundle.PREPARE_PARTS, ()),
        ("wait", bundle.POD_PARTS, ("--limit-s", "60")),
    ):
        program.write_bytes(bundle.build(parts))
        command = ("python3", "/broadgauge/program/broadgauge.zip", name, *words)
        assert "is there" in built.run(folder, *command, **told)
    made = folder / "storage/model/a.bin"
    assert (made.read_bytes(), made.stat().st_uid) == (b"one", int(ANY_USER.partition(":")[0]))


def test_a_pod_of_the_image_trains(built: Built, folder: Path) -> None:
    """Its rendered command, with this checkout's torch, where the image's Python can load it."""
    (packages,) = built.root.glob("usr/local/lib/python3*/dist-packages")
    own = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if packages.parent.name != own:
        pytest.skip(f"this checkout's torch is {own}'s, and Debian's is {packages.parent.name}")
    link_torch(packages)
    found = rendered(folder, text=EXPERIMENT)
    (case,) = (
        each["data"]["case.json"]
        for each in objects_of(found, "ConfigMap")
        if "case.json" in each.get("data", {})
    )
    (folder / "case/case.json").write_text(case)
    (folder / "program/broadgauge.zip").write_bytes(bundle.build(bundle.POD_PARTS))
    container = container_of(found)
    plain = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    log = built.run(folder, *container["command"], *container["args"], **plain)
    lines = [line for line in log.splitlines() if line.startswith(BLOCK_WORD)]
    blocks = [json.loads(line.removeprefix(BLOCK_WORD)) for line in lines]
    assert {block["rank"] for block in blocks} == {0, 1}, log
