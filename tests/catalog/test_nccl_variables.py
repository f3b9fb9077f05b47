"""Proves catalog/nccl_variables.py and its data: which releases read which variables."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

from broadgauge.catalog.nccl_variables import (
    OF_NCCL,
    find_nccl_variable,
    known_nccl_variables,
    newest_known_release,
    version_of,
)

SCRIPT = Path(__file__).parents[2] / "scripts/nccl_variables.py"


def test_names_are_told_once() -> None:
    names = [entry.name for entry in known_nccl_variables()]
    assert len(set(names)) == len(names)
    assert len(names) > 300


def test_nccls_own_have_releases_in_order() -> None:
    for entry in known_nccl_variables():
        if entry.reader == OF_NCCL:
            assert () < version_of(entry.first or "") <= version_of(entry.last or ""), entry.name
        else:
            assert entry.first is None, entry.name


def test_words_have_values() -> None:
    for entry in known_nccl_variables():
        assert bool(entry.values) == (entry.kind in ("word", "level")), entry.name


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("NCCL_IB_HCA", "2.3.5", "2.30.7"),
        ("NCCL_CONF_FILE", "2.23.4", "2.30.7"),
        ("NCCL_RAS_ENABLE", "2.24.3", "2.30.7"),
        ("NCCL_WORK_FIFO_DEPTH", "2.13.4", "2.21.5"),
        ("NCCL_IB_CUDA_SUPPORT", "2.3.5", "2.3.7"),
    ],
)
def test_releases_that_read_it(name: str, first: str, last: str) -> None:
    entry = find_nccl_variable(name)
    assert entry is not None
    assert (entry.first, entry.last) == (first, last)


def test_all_that_begin_so() -> None:
    entry = find_nccl_variable("NCCL_FASTRAK_NUM_FLOWS")
    assert entry is not None
    assert entry.reader == "gpudirect-tcpxo"
    assert find_nccl_variable("NCCL_IB_HBA") is None


def test_the_newest_release() -> None:
    assert newest_known_release() == (2, 30, 7)


@pytest.mark.parametrize(
    ("text", "version"),
    [("2.28.9", (2, 28, 9)), ("2.27.3+cuda12.4", (2, 27, 3)), ("", ()), ("x", ()), ("2.x", (2,))],
)
def test_versions(text: str, version: tuple[int, ...]) -> None:
    assert version_of(text) == version


def test_the_script_reads_a_release(tmp_path: Path) -> None:
    """Of a repository that is made here: a parameter, a typed one, and a plain variable."""
    spec = importlib.util.spec_from_file_location("nccl_variables", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.cc").write_text(
        'NCCL_PARAM(A, "IB_A",\n 1);\nDEFINE_NCCL_PARAM(b, const char*, NCCL_B, 0);\n'
        'ncclGetEnv("NCCL_C"); x = "NCCL_D_INITIALIZER";\n'
    )
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"], ["tag", "v2.9.1-1"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    assert script.releases(tmp_path / ".git") == [("2.9.1", "v2.9.1-1")]
    assert script.variables_of(tmp_path / ".git", "v2.9.1-1") == {
        "NCCL_IB_A": "integer",
        "NCCL_B": "text",
        "NCCL_C": "text",
    }
