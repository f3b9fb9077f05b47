"""Is the Python found that a user means: by path, by environment's folder, or by conda's name?"""

import os
import sys
from pathlib import Path

import pytest

from broadgauge.messages.pythons import NoSuchPythonError, activated, find_python


def an_environment(folder: Path, marker: str = "pyvenv.cfg") -> Path:
    """An environment's folder, and its interpreter."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (folder / marker).mkdir() if marker == "conda-meta" else (folder / marker).touch()
    return python


def test_an_interpreter_and_an_environments_folder_by_path(tmp_path: Path) -> None:
    python = an_environment(tmp_path / "venv")
    for text in ("venv", "./venv/", "venv/bin/python", str(python), str(tmp_path / "venv")):
        assert find_python(text, tmp_path, {}) == python, text


def test_a_program_of_path(tmp_path: Path) -> None:
    python = an_environment(tmp_path / "venv")
    variables = {"PATH": str(python.parent)}
    assert find_python("python", tmp_path, variables) == python


@pytest.mark.parametrize(
    ("variable", "value", "envs"),
    [
        ("CONDA_ENVS_PATH", "envs", "envs"),
        ("CONDA_EXE", "conda/bin/conda", "conda/envs"),
        ("MAMBA_ROOT_PREFIX", "mamba", "mamba/envs"),
        ("HOME", "", "miniconda3/envs"),
        ("HOME", "", "miniforge3/envs"),
    ],
)
def test_a_conda_environment_by_its_name(
    variable: str, value: str, envs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    python = an_environment(tmp_path / envs / "mine", "conda-meta")
    variables = {variable: str(tmp_path / value), "PATH": ""}
    assert find_python("mine", tmp_path, variables) == python
    assert activated(python, variables)["CONDA_PREFIX"] == str(tmp_path / envs / "mine")


def test_one_that_conda_has_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    python = an_environment(tmp_path / "elsewhere" / "mine")
    (tmp_path / ".conda").mkdir()
    (tmp_path / ".conda" / "environments.txt").write_text(f"\n{tmp_path}/elsewhere/mine\n")
    assert find_python("mine", tmp_path, {"PATH": ""}) == python


def test_what_is_missing_is_said_with_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "miniconda3" / "envs").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoSuchPythonError, match=f"no conda environment.*{tmp_path}/miniconda3"):
        find_python("no-such-name", tmp_path, {"PATH": ""})
    with pytest.raises(NoSuchPythonError, match="no Python in its bin/"):
        find_python("./empty", tmp_path, {})
    with pytest.raises(NoSuchPythonError, match="no such file or folder"):
        find_python("/no/such/python", tmp_path, {})
    (tmp_path / "plain").touch()
    with pytest.raises(NoSuchPythonError, match="may not be executed"):
        find_python("./plain", tmp_path, {})
    with pytest.raises(NoSuchPythonError, match="no such user's home"):
        find_python("~no-such-user-here/venv", tmp_path, {})


def test_an_environments_programs_come_first(tmp_path: Path) -> None:
    python = an_environment(tmp_path / "venv")
    changed = activated(python, {"PATH": "/usr/bin", "PYTHONHOME": "/x"})
    assert changed["PATH"] == f"{python.parent}{os.pathsep}/usr/bin"
    assert changed["VIRTUAL_ENV"] == str(tmp_path / "venv")
    assert "PYTHONHOME" not in changed
