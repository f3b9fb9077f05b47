"""Proves platforms/kubernetes/user_files.py: what is sent comes from the experiment's folder, is a
file, and fits."""

import os
from pathlib import Path

import pytest

from broadgauge.manifests.config_maps import file_keys
from broadgauge.platforms.kubernetes.user_files import MOST_BYTES, read_address_map, user_files
from broadgauge.specs.errors import InputError
from broadgauge.specs.kubernetes import Kubernetes
from broadgauge.specs.network import Network


def sent(folder: Path, *names: str) -> dict[str, bytes]:
    return user_files((), Kubernetes(files=names), folder)


def mapped(folder: Path, name: str) -> str | None:
    ipam = {"kind": "address-map", "map": name}
    place = {"attachment": "host-device", "devices": ["ens13"], "ipam": ipam}
    return read_address_map([Network.model_validate({"name": "n", "kubernetes": place})], folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "private").write_text("HIDDEN")
    made = tmp_path / "experiment"
    (made / "deep").mkdir(parents=True)
    (made / "deep/a.py").write_text("a")
    return made


def test_file_and_link_inside_are_sent(folder: Path) -> None:
    (folder / "b.py").symlink_to("deep/a.py")
    assert sent(folder, "deep/a.py", "./b.py", "b.py") == {"deep/a.py": b"a", "b.py": b"a"}


@pytest.mark.parametrize("name", ["link", "folder/private", "loop", "..", "../private", "a\0b"])
def test_nothing_outside_is_sent(folder: Path, name: str) -> None:
    (folder / "link").symlink_to(folder.parent / "private")
    (folder / "folder").symlink_to(folder.parent)
    (folder / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=r"^kubernetes\.files: ") as refused:
        sent(folder, name)
    assert refused.value.hint


@pytest.mark.parametrize("name", ["pipe", "deep", "", "zero"])
def test_what_is_no_file_is_neither_waited_for_nor_read_for_ever(folder: Path, name: str) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "zero").symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"^kubernetes\.files: "):
        sent(folder, name)


def test_large_file_is_not_read_whole(folder: Path) -> None:
    with (folder / "large.bin").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match=f"large.bin is larger than .* {MOST_BYTES:,} bytes"):
        sent(folder, "large.bin")


def test_path_that_a_config_map_refuses_is_named(folder: Path) -> None:
    (folder / "..x").write_text("x")
    with pytest.raises(InputError, match=r"'\.\.x': a ConfigMap takes no path"):
        sent(folder, "..x")


@pytest.mark.parametrize(
    "paths",
    [("a/b", "a__b"), ("file-001", "a b"), ("a b", "file-000"), ("a", "b/c"), ("ä", "a..b")],
)
def test_each_file_has_a_key_of_its_own(paths: tuple[str, ...]) -> None:
    keys = file_keys(dict.fromkeys(paths, b""))
    assert list(keys) == list(paths)
    assert len(set(keys.values())) == len(paths)


def test_address_map_is_a_file_of_text(folder: Path) -> None:
    (folder / "map").write_text("w0:ens13:net1:10.0.1.9\n")
    assert mapped(folder, "map") == "w0:ens13:net1:10.0.1.9\n"
    os.mkfifo(folder / "pipe")
    with (folder / "large").open("wb") as file:
        file.truncate(1 << 40)
    for name, words in (("pipe", "no plain file"), ("large", "is larger"), ("/dev/zero", "plain")):
        with pytest.raises(InputError, match=words):
            mapped(folder, name)
