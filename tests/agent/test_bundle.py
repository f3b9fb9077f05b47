"""The zip file holds what it needs, and nothing of anybody else."""

import ast
import os
import subprocess
import sys
import tokenize
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


@pytest.mark.parametrize(
    "parts", [bundle.POD_PARTS, bundle.STORAGE_POD_PARTS, bundle.RUN_POD_PARTS]
)
def test_a_pods_file_has_every_line_where_it_was_and_no_words(parts: tuple[str, ...]) -> None:
    data = bundle.build(parts)
    assert len(data) < 350_000  # as text in a ConfigMap, which holds 1 MiB, a third more
    archive = zipfile.ZipFile(BytesIO(data))
    root = Path(bundle.__file__).parents[2]
    for name in archive.namelist()[1:]:
        source, short = (root / name).read_bytes(), archive.read(name)
        assert short.count(b"\n") == source.count(b"\n"), name
        if name.endswith(".py"):
            assert names_by_line(short) == names_by_line(source), name
            assert ast.get_docstring(ast.parse(short)) in (None, ""), name
            tokens = tokenize.tokenize(BytesIO(short).readline)
            assert not [token for token in tokens if token.type == tokenize.COMMENT], name


def names_by_line(source: bytes) -> list[tuple[int, str]]:
    """What a traceback shows, and more."""
    nodes = ast.walk(ast.parse(source))
    return [(node.lineno, node.id) for node in nodes if isinstance(node, ast.Name)]


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


@pytest.mark.parametrize(
    ("python", "parts"),
    [
        (pythons.oldest, bundle.PACKAGES),
        (pythons.newest, bundle.PACKAGES),
        (pythons.oldest, bundle.POD_PARTS),
        (pythons.oldest, bundle.STORAGE_POD_PARTS),
        (pythons.oldest, bundle.RUN_POD_PARTS),
    ],
)
def test_it_needs_nothing_else(
    python: Callable[[], str], parts: tuple[str, ...], tmp_path: Path
) -> None:
    """-I and -S: no site-packages, nothing of the working folder. Probes may ask for torch."""
    path = tmp_path / "broadgauge.zip"
    path.write_bytes(bundle.build(parts))
    names = zipfile.ZipFile(BytesIO(bundle.build(parts))).namelist()
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


@pytest.mark.parametrize(
    ("parts", "here", "not_here"),
    [
        (bundle.POD_PARTS, {"pod", "wait"}, {"leader", "pod-agent", "pod-leader", "prepare"}),
        (bundle.RUN_POD_PARTS, {"pod-agent", "pod-leader", "supervise", "worker"}, {"prepare"}),
        (bundle.PREPARE_PARTS, {"prepare"}, {"leader", "pod", "pod-agent"}),
    ],
)
def test_a_file_names_the_programs_that_it_has(
    tmp_path: Path, parts: tuple[str, ...], here: set[str], not_here: set[str]
) -> None:
    path = tmp_path / "broadgauge.zip"
    path.write_bytes(bundle.build(parts))
    for word, said in (("leadr", "`leadr` is no program of this file: "), ("", "which program")):
        command = [sys.executable, str(path), *([word] if word else [])]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.startswith(said)
        known = set(ended.stderr.partition(": ")[2].strip().split(", "))
        assert here <= known
        assert not not_here & known
