"""Proves ownership.py: what fsGroup changes of a volume, and when it changes nothing."""

import os
from pathlib import Path

import pytest
from tests.kubernetes.kubelet.ownership import ON_ROOT_MISMATCH, give_group

pytestmark = pytest.mark.root
GROUP = 4321


def volume(tmp_path: Path) -> Path:
    folder = tmp_path / "volume"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/file").write_text("x")
    (folder / "link").symlink_to("/etc/passwd")
    for path, mode in ((folder, 0o755), (folder / "deep", 0o700), (folder / "deep/file", 0o604)):
        path.chmod(mode)
    return folder


def modes(folder: Path) -> list[tuple[str, int, str]]:
    paths = (folder, folder / "deep", folder / "deep/file", folder / "link")
    found = ((path, path.lstat()) for path in paths)
    return [(path.name, one.st_gid, oct(one.st_mode & 0o7777)) for path, one in found]


@pytest.mark.parametrize("policy", [None, "Always", ON_ROOT_MISMATCH])
def test_group_may_write_all_that_is_there(tmp_path: Path, policy: str | None) -> None:
    folder = volume(tmp_path)
    outside = Path("/etc/passwd").stat()
    give_group(folder, GROUP, policy)
    assert modes(folder) == [
        ("volume", GROUP, "0o2775"),
        ("deep", GROUP, "0o2770"),
        ("file", GROUP, "0o664"),
        ("link", GROUP, "0o777"),
    ]
    after = Path("/etc/passwd").stat()
    assert (after.st_gid, after.st_mode) == (outside.st_gid, outside.st_mode)


@pytest.mark.parametrize(("policy", "group"), [(None, GROUP), (ON_ROOT_MISMATCH, 0)])
def test_what_lies_deeper_is_left_alone_where_its_top_is_right(
    tmp_path: Path, policy: str | None, group: int
) -> None:
    folder = volume(tmp_path)
    give_group(folder, GROUP, policy)
    (folder / "deep/later").write_text("x")
    os.chown(folder / "deep/later", 0, 0)
    give_group(folder, GROUP, policy)
    assert (folder / "deep/later").stat().st_gid == group
    folder.chmod(0o755)
    give_group(folder, GROUP, policy)
    assert (folder / "deep/later").stat().st_gid == GROUP
