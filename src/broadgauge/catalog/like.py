"""What does `like: h100-sxm` mean? An entry that says only what it has of its own.

The rest is taken from the entry that it is like: of a mapping (`peaks`, `nvlink`) key by key, of
anything else as a whole. Names, sources, prices and published counts are never taken: they are of
the other one.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from broadgauge.catalog.entries import Entry, find_entry
from broadgauge.catalog.gpus import known_gpus
from broadgauge.catalog.model_configs import is_config_path, read_model
from broadgauge.catalog.models import ModelEntry, known_models
from broadgauge.catalog.nodes import known_nodes

KEY = "like"
_SHIPPED: Mapping[str, Callable[[], Sequence[Entry]]] = {
    "gpus": known_gpus,
    "nodes": known_nodes,
    "models": known_models,
}
KINDS = tuple(_SHIPPED)
"""Those whose entries have so many figures that few know them all."""
_NOT_TAKEN = frozenset(
    ("name", "aliases", "matches", "source", "sources", "date", "note", "fitted_on", "like")
) | {"price_usd_per_hour", "published_params", "published_active_params"}


def filled(kind: str, data: Mapping[str, Any], own: Sequence[Entry], file: str) -> dict[str, Any]:
    """The data with what it does not say. `own`: entries of the same kind above it in the file.

    Raises InputError where nobody knows the entry that it is like.
    """
    base = _base(kind, str(data[KEY]), own, file)
    known = base.model_dump(by_alias=True, exclude_unset=True, exclude=set(_NOT_TAKEN))
    if isinstance(base, ModelEntry):
        known = {key: value for key, value in known.items() if key not in base.following}
    merged = _merged(known, data) | {KEY: base.name}
    if kind == "gpus":
        merged["peaks"] = _peaks(known["peaks"], data.get("peaks"), merged["peaks"])
    if kind == "gpus" and "products" in known and "products" not in data:
        merged["products"] = _products(known, merged)
    return merged


def _base(kind: str, name: str, own: Sequence[Entry], file: str) -> Entry:
    """A model may be like one of a Hugging Face file, whose path begins at the catalog's folder."""
    if kind == "models" and is_config_path(name):
        return read_model(Path(file).parent / name)
    entries = (*own, *_SHIPPED[kind]())
    return find_entry(name, entries, kind.removesuffix("s"))


def _merged(known: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(known)
    for key, value in said.items():
        below = known.get(key)
        is_part = isinstance(value, Mapping) and isinstance(below, Mapping)
        merged[key] = _merged(below, value) if is_part else value  # type: ignore[arg-type]
    return merged


def _peaks(known: Mapping[str, Any], said: Any, merged: Any) -> Any:
    """fp16 and bf16 stay equal where they were: an offer names one of them."""
    halves = ("fp16", "bf16")
    if not isinstance(said, Mapping) or known.get("fp16") != known.get("bf16"):
        return merged
    named = [half for half in halves if half in said]
    return merged | dict.fromkeys(halves, said[named[0]]) if len(named) == 1 else merged


def _products(known: Mapping[str, Any], merged: Mapping[str, Any]) -> dict[str, Any]:
    """What large products reach stays the same share of the peak, be that another one."""
    products = dict(known["products"])
    precision = products["precision"]
    peaks = merged.get("peaks")
    peak = peaks.get(precision) if isinstance(peaks, Mapping) else None
    if isinstance(peak, (int, float)) and not isinstance(peak, bool):
        products["reached_tflops"] *= peak / known["peaks"][precision]
    return products
