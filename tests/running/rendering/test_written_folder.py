"""Proves running/rendering/written_folder.py: a later rendering removes what an earlier one wrote,
and nothing else, whatever the list of it says."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from broadgauge.running.rendering.written_folder import MARKER, write_rendered
from broadgauge.specs.errors import InputError

DATA = b"keep me"
WHAT = "the experiment x"
HASH = hashlib.sha256(DATA).hexdigest()


def rendered(*paths: str) -> dict[str, str]:
    return dict.fromkeys(paths, "x")


def mark(folder: Path, *paths: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / MARKER).write_text(json.dumps({"of": WHAT, "files": dict.fromkeys(paths, HASH)}))


def test_what_is_rendered_no_more_is_removed(tmp_path: Path) -> None:
    assert write_rendered(rendered("20-networks/a.yaml", "b.yaml"), tmp_path, WHAT) == ()
    removed = write_rendered(rendered("b.yaml"), tmp_path, WHAT)
    assert removed == (tmp_path / "20-networks/a.yaml",)
    assert not (tmp_path / "20-networks").exists()
    assert (tmp_path / "b.yaml").read_text() == "x"


def test_another_ones_files_are_not_replaced(tmp_path: Path) -> None:
    write_rendered(rendered("40-job/a.yaml", "kustomization.yaml"), tmp_path, WHAT)
    with pytest.raises(InputError, match="holds the files of the experiment x"):
        write_rendered(rendered("kustomization.yaml"), tmp_path, "the experiment y")
    assert (tmp_path / "40-job/a.yaml").exists()


def test_what_is_kept_stays_and_is_known_later(tmp_path: Path) -> None:
    write_rendered(rendered("overlays/a", "overlays/b", "c"), tmp_path, WHAT)
    kept = write_rendered(rendered("d"), tmp_path, WHAT, is_kept=lambda path: path[-1] == "a")
    assert kept == (tmp_path / "c", tmp_path / "overlays/b")
    assert write_rendered(rendered("d"), tmp_path, WHAT) == (tmp_path / "overlays/a",)


@pytest.mark.parametrize("form", ["absolute", "../victim", "x/../../victim", "./a", "", "a\0b"])
def test_list_names_nothing_outside_of_its_folder(tmp_path: Path, form: str) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "out"
    victim.write_bytes(DATA)
    mark(folder, str(victim) if form == "absolute" else form)
    with pytest.raises(InputError, match="no file below this folder"):
        write_rendered(rendered("b.yaml"), folder, WHAT)
    assert victim.read_bytes() == DATA
    assert not (folder / "b.yaml").exists()


def test_link_leads_nowhere(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    (elsewhere / "victim").write_bytes(DATA)
    mark(folder, "link/victim")
    (folder / "link").symlink_to(elsewhere)
    with pytest.raises(InputError, match="is kept"):
        write_rendered(rendered("b.yaml"), folder, WHAT)
    assert (elsewhere / "victim").read_bytes() == DATA


@pytest.mark.parametrize("target", ["list.json", "absent"])
def test_list_itself_is_no_link(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "out"
    mark(folder)
    (folder / MARKER).rename(tmp_path / "list.json")
    (folder / MARKER).symlink_to(tmp_path / target)
    with pytest.raises(InputError, match="no plain file"):
        write_rendered(rendered("b.yaml"), folder, WHAT)
    assert json.loads((tmp_path / "list.json").read_bytes()) == {"of": WHAT, "files": {}}
    assert not (tmp_path / "absent").exists()


def test_listed_file_that_was_changed_is_kept(tmp_path: Path) -> None:
    mark(tmp_path, "a.yaml")
    (tmp_path / "a.yaml").write_bytes(b"mine now")
    with pytest.raises(InputError, match="was changed"):
        write_rendered(rendered("b.yaml"), tmp_path, WHAT)
    assert (tmp_path / "a.yaml").read_bytes() == b"mine now"


def test_pipe_is_not_waited_for(tmp_path: Path) -> None:
    mark(tmp_path, "a.yaml")
    os.mkfifo(tmp_path / "a.yaml")
    with pytest.raises(InputError, match="is kept"):
        write_rendered(rendered("b.yaml"), tmp_path, WHAT)
