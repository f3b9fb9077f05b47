"""Which interpreter is meant by `python: …`, on the machine that it is to run on?

The path of an interpreter, the folder of a virtual or conda environment, a program of PATH, or the
name of a conda environment. conda itself is not run: its environments are folders.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

_CONDA_HOMES = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda")
"""Of a user's home, and below /opt."""


class NoSuchPythonError(Exception):
    """The message says what was looked for, and where."""


def find_python(text: str, folder: Path, environment: Mapping[str, str]) -> Path:
    """The interpreter; relative paths start from `folder`. Raises NoSuchPythonError."""
    try:
        path = folder / Path(text).expanduser()
    except RuntimeError:
        raise NoSuchPythonError(f"`python: {text}`: no such user's home") from None
    found = _in(path)
    if found is not None:
        return found
    if os.sep in text:
        raise NoSuchPythonError(f"`python: {text}`: {_why_none(path)}: {path}")
    program = shutil.which(text, path=environment.get("PATH"))
    if program is not None:
        return Path(program)
    looked_in = tuple(dict.fromkeys(_conda_folders(environment)))
    for each in looked_in:
        found = _in(each / text)
        if found is not None:
            return found
    for each in _known_to_conda():
        if each.name == text and (found := _in(each)) is not None:
            return found
    places = ", ".join(str(each) for each in looked_in if each.is_dir()) or "none is here"
    raise NoSuchPythonError(
        f"`python: {text}`: no such file in {folder}, no such program, and no conda environment "
        f"of that name (environments' folders: {places})"
    )


def _why_none(path: Path) -> str:
    if path.is_dir():
        return "no Python in its bin/"
    return "may not be executed" if path.is_file() else "no such file or folder"


def activated(python: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that activating its environment would set, but for scripts of its own."""
    folder = python.parent
    changed = {**environment, "PATH": os.pathsep.join([str(folder), environment.get("PATH", "")])}
    changed.pop("PYTHONHOME", None)
    if (folder.parent / "conda-meta").is_dir():
        changed["CONDA_PREFIX"] = str(folder.parent)
    elif (folder.parent / "pyvenv.cfg").is_file():
        changed["VIRTUAL_ENV"] = str(folder.parent)
    return changed


def _in(path: Path) -> Path | None:
    """An interpreter, or that of an environment's folder. Links stay: they say which environment
    it is."""
    for each in (path, path / "bin" / "python", path / "bin" / "python3"):
        if each.is_file() and os.access(each, os.X_OK):
            return each.absolute()
    return None


def _conda_folders(environment: Mapping[str, str]) -> Iterator[Path]:
    """Where conda keeps environments. Source: conda's documentation, `envs_dirs`."""
    for name in ("CONDA_ENVS_PATH", "CONDA_ENVS_DIRS"):
        for each in environment.get(name, "").split(os.pathsep):
            if each:
                yield Path(each)
    if root := environment.get("MAMBA_ROOT_PREFIX"):
        yield Path(root) / "envs"
    if program := environment.get("CONDA_EXE"):
        yield Path(program).parents[1] / "envs"
    for home in (Path("~").expanduser(), Path("/opt")):
        for name in _CONDA_HOMES:
            yield home / name / "envs"
    yield Path("/opt/conda/envs")


def _known_to_conda() -> Iterator[Path]:
    """Environments with a path of their own. Source: conda writes this list as it makes them."""
    with suppress(OSError):
        for line in (Path("~").expanduser() / ".conda" / "environments.txt").open():
            if line.strip():
                yield Path(line.strip())
