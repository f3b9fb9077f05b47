"""Holds what is rendered, byte by byte: users commit it."""

import pytest
from tests.manifests.golden_experiments import FOLDER, rendered

RENDERED = rendered()


@pytest.mark.parametrize("name", RENDERED)
def test_files_are_as_they_were(name: str) -> None:
    assert (FOLDER / name).read_text() == RENDERED[name]


def test_no_file_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} == RENDERED.keys()
