"""Proves catalog/loading.py and compiling.py: the fast copies say what the YAML says."""

import json
from typing import Any

import pytest

from broadgauge.catalog.compiling import compiled_text
from broadgauge.catalog.loading import (
    KINDS,
    OF_KUBERNETES,
    OF_THE_DOCTOR,
    OF_THE_PREDICTOR,
    catalog_folder,
    digest,
    shipped_text,
)
from broadgauge.catalog.reading import MODELS


def copy_of(kind: str) -> dict[str, Any]:
    folder = catalog_folder().joinpath("compiled")
    copy: dict[str, Any] = json.loads(folder.joinpath(f"{kind}.json").read_text(encoding="utf-8"))
    return copy


@pytest.mark.parametrize("kind", [*KINDS, *OF_THE_PREDICTOR, *OF_THE_DOCTOR, *OF_KUBERNETES])
def test_the_copy_was_made_of_this_text(kind: str) -> None:
    """Where this fails: `python -m broadgauge.catalog.compiling`."""
    assert copy_of(kind)["sha256"] == digest(shipped_text(kind))


@pytest.mark.parametrize("kind", sorted((*KINDS, *OF_THE_DOCTOR, *OF_KUBERNETES)))
def test_every_copy_says_what_its_text_says(kind: str) -> None:
    copy = catalog_folder().joinpath("compiled", f"{kind}.json").read_text(encoding="utf-8")
    assert copy == compiled_text(kind)


def test_every_kind_that_a_user_may_write_is_shipped() -> None:
    assert set(MODELS) <= set(KINDS)
