"""Which other interpreters are there? The zip file of agents runs under those of others' images."""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "python310"


@cache
def oldest() -> str:
    """Python 3.10: found, or fetched by scripts/python310. In CI there must be one."""
    done = subprocess.run([SCRIPT], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout.splitlines()[-1]
    if os.environ.get("CI") == "true":
        pytest.fail(f"no Python 3.10: {done.stderr}")
    pytest.skip(f"no Python 3.10, so nothing older than {sys.version.split()[0]}: {done.stderr}")


@cache
def newest() -> str:
    """On PATH or of pyenv; at least the one that runs this."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = {path for folder in folders for path in folder.glob("python3.[1-9]*")}
    found |= set(root.glob("versions/3.*/bin/python3.[1-9]*"))
    named = {path for path in found if re.fullmatch(r"python3\.\d+", path.name)}
    for path in sorted(named, key=lambda path: -int(path.name.partition(".")[2])):
        if shutil.which(str(path)) and _runs(path):
            return str(path)
    return sys.executable


def _runs(path: Path) -> bool:
    """A shim of pyenv may stand for a version that is not chosen."""
    try:
        done = subprocess.run(
            [path, "-I", "-S", "-c", "import zlib, ctypes"],
            capture_output=True,
            check=False,
            timeout=60,
        )
    except OSError:
        return False
    return done.returncode == 0
