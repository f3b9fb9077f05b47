"""The zip file holds what it needs, and nothing of anybody else."""

import os
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

from broadgauge.agent import bundle


def test_equal_sources_give_equal_bytes() -> None:
    first = bundle.build()
    bundle.build.cache_clear()
    assert bundle.build() == first
    assert len(first) < 500_000


def test_all_but_the_probes_runs_alone(tmp_path: Path) -> None:
    """-I and -S: no site-packages, nothing of the working folder."""
    path = tmp_path / "broadgauge.zip"
    path.write_bytes(bundle.build())
    names = zipfile.ZipFile(BytesIO(bundle.build())).namelist()
    modules = [
        name[:-3].replace("/", ".")
        for name in names
        if "__" not in name and not name.startswith("broadgauge/probes/")
    ]
    program = f"import sys; sys.path.insert(0, {str(path)!r}); import " + ", ".join(modules)
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True, env={}, cwd=tmp_path)


def test_an_unknown_program_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broadgauge.zip"
    path.write_bytes(bundle.build())
    command = [sys.executable, str(path), "leadr"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ)
    assert ended.returncode == 2
    assert "`leadr` is no program" in ended.stderr
