"""Holds what an installation brings along."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import requires
from pathlib import Path

LIGHT_LIMIT = 12


def needs(package: str, seen: set[str]) -> set[str]:
    """Every package that `package` needs on this machine, extras left out."""
    for requirement in requires(package) or ():
        name, _, marker = requirement.partition(";")
        if "extra ==" in marker or 'sys_platform == "win32"' in marker:
            continue
        found = re.match(r"[A-Za-z0-9._-]+", name)
        assert found is not None
        normal = re.sub(r"[-_.]+", "-", found[0]).lower()
        if normal not in seen and normal not in ("colorama",):
            seen.add(normal)
            needs(normal, seen)
    return seen


def test_the_light_install_is_light() -> None:
    packages = needs("broadgauge", set())
    assert "torch" not in packages
    assert len(packages) <= LIGHT_LIMIT, sorted(packages)


def test_an_installation_brings_the_examples_and_the_catalog(
    repository: Path, tmp_path: Path
) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=repository, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for kind, folder in (("examples", "examples"), ("catalog", "src/broadgauge/catalog")):
        wanted = {path.name for path in (repository / folder).glob("*.yaml")}
        assert wanted, folder
        assert wanted <= {n.rsplit("/", 1)[1] for n in names if n.startswith(f"broadgauge/{kind}/")}
    rules = repository / "src" / "broadgauge" / "doctor" / "rules"
    copies = [*rules.glob("*.yaml"), *rules.glob("compiled/*.json")]
    assert {str(path.relative_to(repository / "src")) for path in copies} <= names


def test_locks_name_no_index_and_hold_every_dependency(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(item for extra in extras.values() for item in extra)]
    for lock in ("all", "light", "uv"):
        text = (repository / "requirements" / f"{lock}.lock").read_text()
        assert "://" not in text
        assert "--index" not in text
    everything = (repository / "requirements" / "all.lock").read_text()
    for requirement in wanted:
        name = re.match(r"[a-z0-9-]+", requirement.replace(".", "-").lower())
        assert name is not None
        assert f"\n{name[0]}==" in "\n" + everything, requirement
    assert "\ntorch==" not in (repository / "requirements" / "light.lock").read_text()


def test_ruff_is_run_on_our_own_files_only(repository: Path) -> None:
    """A user's own files in the checkout must not fail `make test`."""
    lines = (repository / "Makefile").read_text().splitlines()
    calls = [line.split() for line in lines if "/ruff " in line]
    assert len(calls) == 4
    assert all(call[-1] == "$(CHECKED)" for call in calls)
    (checked,) = [line.split(":= ")[1] for line in lines if line.startswith("CHECKED")]
    assert checked.split() == ["src", "tests", "scripts", "examples"]


def test_modules_are_compiled_once_whatever_the_shell_says(
    repository: Path, tmp_path: Path
) -> None:
    asks = tmp_path / "asks.mk"
    code = "import sys; print(sys.dont_write_bytecode)"
    asks.write_text(f"asked:\n\t@{sys.executable} -c '{code}'\n")
    command = ["make", "--no-print-directory", "-f", "Makefile", "-f", str(asks), "asked"]
    shell = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    made = subprocess.run(
        command, cwd=repository, env=shell, check=True, capture_output=True, text=True
    )
    assert made.stdout == "False\n"
