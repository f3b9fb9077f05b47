"""How do entries come out of a catalog file, and fast?

YAML is what people read and edit; parsing all of it takes seconds. So each shipped file has a copy
in JSON (`compiled/gpus.json`) with the digest of the YAML text that it was made of. A copy that is
missing or of another text is not used: the YAML itself is parsed then. The copies are made by
`python -m broadgauge.catalog.compiling`, and a test holds them current.
"""

import functools
import hashlib
import json
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from broadgauge.catalog.entries import EntryType

KINDS = ("gpus", "transports", "networks", "nodes", "models", "storage", "prices", "busbw")
"""Of entries: each has a file `KIND.yaml` with one list, `KIND`."""
OF_THE_PREDICTOR = ("frameworks", "constants", "fitted", "widenings")
"""Of the same form, with where its constants start, what they were fitted to, and where intervals
are wider."""
OF_THE_DOCTOR = ("nccl_variables",)
"""Of the same form; no user's file has them."""
OF_KUBERNETES = ("fabrics",)
"""Of the same form; no user's file has them."""
OF_THE_ARTICLES = (
    *("rows_of_000", "rows_of_001", "rows_of_003", "rows_of_004"),
    *("article_claims", "article_parts", "article_measured", "article_differences"),
)
"""Of the same form; no user's file has them."""


def catalog_folder() -> Traversable:
    """Where the shipped files are."""
    return resources.files("broadgauge.catalog")


def shipped_text(kind: str) -> str:
    """The YAML of one kind."""
    return catalog_folder().joinpath(f"{kind}.yaml").read_text(encoding="utf-8")


def digest(text: str) -> str:
    """What a copy must carry to be of this text."""
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def shipped_data(kind: str) -> list[dict[str, Any]]:
    """The plain entries of one kind, from the copy where it is of this text."""
    text = shipped_text(kind)
    compiled = catalog_folder().joinpath("compiled", f"{kind}.json")
    if compiled.is_file():
        copy = json.loads(compiled.read_text(encoding="utf-8"))
        if copy["sha256"] == digest(text):
            return list(copy["entries"])
    from broadgauge.specs.text.yaml_source import parse_yaml  # a fifth of a second, rarely needed

    return list(parse_yaml(text, f"{kind}.yaml").data[kind])


def shipped_entries(kind: str, model: type[EntryType]) -> tuple[EntryType, ...]:
    """Every shipped entry of one kind."""
    return tuple(model.model_validate(entry) for entry in shipped_data(kind))
