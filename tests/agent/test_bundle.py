"""The zip file holds what it needs, and nothing of anybody else."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from tests import pythons

from broadgauge.agent import bundle


def test_equal_sources_give_equal_bytes() -> None:
    first = bundle.build()
    bundle.build.cache_clear()
    assert bundle.build() == first
    assert len(first) < 500_000


IMPORT_ALL = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for module in sys.argv[2:]:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] != "torch" or ".probes." not in module:
            raise
"""


@pytest.mark.parametrize("python", [pythons.oldest, pythons.newest])
def test_it_needs_nothing_else(python: Callable[[], str], tmp_path: Path) -> None:
    """-I and -S: no site-packages, nothing of the working folder. Probes may ask for torch."""
    path = tmp_path / "broadgauge.zip"
    path.write_bytes(bundle.build())
    names = zipfile.ZipFile(BytesIO(bundle.build())).namelist()
    modules = [
        name[:-3].replace("/", ".") for name in names if name.endswith(".py") and "__" not in name
    ]
    assert "broadgauge.probes.worker" in modules
    command = [python(), "-I", "-S", "-c", IMPORT_ALL, str(path), *modules]
    subprocess.run(command, check=True, env={}, cwd=tmp_path)


def test_an_unknown_program_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broadgauge.zip"
    path.write_bytes(bundle.build())
    command = [sys.executable, str(path), "leadr"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ)
    assert ended.returncode == 2
    assert "`leadr` is no program" in ended.stderr
