"""A Python with this package that any user may run, wherever the checkout and the interpreter lie.

Either may lie below a folder that only root may enter, and no other interpreter need be there: what
the tests as an ordinary user need is copied, once a session, to where all may read.
"""

import atexit
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parents[1]
NEEDLESS = ("__pycache__", "site-packages", "dist-packages", "config-*", "test", "idlelib")
"""Of the standard library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPython:
    """Copies of an interpreter, of what the package needs, and of `src` and `tests`."""

    folder: Path

    @property
    def executable(self) -> str:
        return str(self.folder / "bin" / version())

    @property
    def environment(self) -> dict[str, str]:
        """What it has to be run with, beside what is set already."""
        folders = (self.folder, self.folder / "src", self.folder / "packages")
        return {
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LD_LIBRARY_PATH": str(self.folder / "lib"),  # a shared libpython is looked for there
        }


@cache
def open_python() -> OpenPython:
    """Made when it is first asked for, removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="open-python-", dir=_open_folder()))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _copy_interpreter(folder)
    for wanted in _packages():
        for path in wanted.files or ():
            if ".." not in path.parts and path.suffix != ".pyc":
                _copy(Path(str(path.locate())), folder / "packages" / path)
    for name in ("src", "tests"):
        shutil.copytree(
            REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    opened = OpenPython(folder=folder)
    _compile(opened)
    _open(folder)
    return opened


def version() -> str:
    """Such as `python3.11`."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _open_folder() -> str:
    """The folder for temporary files, unless it is somebody's own."""
    for name in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        path = Path(name).resolve()
        if all(each.stat().st_mode & 0o001 for each in (path, *path.parents)):
            return str(path)
    raise AssertionError(f"all may enter none of {tempfile.gettempdir()}, /tmp and /var/tmp")


def _copy_interpreter(folder: Path) -> None:
    """It finds its library by where it lies itself. Source: Modules/getpath.py of CPython."""
    _copy(Path(sys.executable).resolve(), folder / "bin" / version())
    for kind in ("stdlib", "platstdlib"):
        shutil.copytree(
            sysconfig.get_path(kind, vars={"base": sys.base_prefix, "platbase": sys.base_prefix}),
            folder / "lib" / version(),
            ignore=shutil.ignore_patterns(*NEEDLESS),
            dirs_exist_ok=True,
        )
    for path in Path(sysconfig.get_config_var("LIBDIR")).glob("libpython3*.so*"):
        _copy(path, folder / "lib" / path.name)


def _compile(opened: OpenPython) -> None:
    """What makes emulated nodes, once: it takes a second of a core, and who uses it can't write."""
    environment = {**os.environ, **opened.environment}
    del environment["PYTHONDONTWRITEBYTECODE"]
    warm_up = "import pyroute2, broadgauge.agent.emulated.nodes"
    subprocess.run([opened.executable, "-c", warm_up], env=environment, check=True)


def _packages() -> Iterator[Distribution]:
    """What the package needs without any extra, what makes emulated nodes, and what both need."""
    names = [*_needs_of(distribution("broadgauge")), "pyroute2"]
    seen: set[str] = set()
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name not in seen:
            seen.add(name)
            found = distribution(name)
            names += _needs_of(found)
            yield found


def _needs_of(package: Distribution) -> Iterator[str]:
    for needed in map(Requirement, package.requires or ()):
        if needed.marker is None or needed.marker.evaluate({"extra": ""}):
            yield needed.name


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def _open(folder: Path) -> None:
    """All may read it, and enter its folders, whatever the umask was."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | 0o444 | (0o111 if path.is_dir() or mode & 0o100 else 0))
