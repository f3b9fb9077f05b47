"""Proves catalog/loading.py and compiling.py: the fast copies say what the YAML says."""

import pytest

from broadgauge.catalog.compiling import compiled_text
from broadgauge.catalog.loading import KINDS, catalog_folder


@pytest.mark.parametrize("kind", KINDS)
def test_the_copy_is_of_the_text(kind: str) -> None:
    """Where this fails: `python -m broadgauge.catalog.compiling`."""
    copy = catalog_folder().joinpath("compiled", f"{kind}.json").read_text(encoding="utf-8")
    assert copy == compiled_text(kind)
