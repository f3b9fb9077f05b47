"""Clusters as their APIs describe them: a file for each in clusters/."""

import json
from pathlib import Path
from typing import Any

from broadgauge.platforms.kubernetes.inventory.cluster_inventory import (
    ClusterAnswers,
    Inventory,
    ListedNetworks,
    NotKnown,
    inventory_of,
)
from broadgauge.platforms.kubernetes.json_shapes import mappings

FOLDER = Path(__file__).parent / "clusters"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def answers(name: str) -> dict[str, Any]:
    """What was read; `not_known` in a file says why not."""
    found = json.loads((FOLDER / f"{name}.json").read_text())
    return {key: _answer(each) for key, each in found.items()}


def _answer(each: dict[str, Any]) -> dict[str, Any] | NotKnown:
    why = each.get("not_known")
    return each if why is None else NotKnown(why, may_be_there=why.startswith("you may not"))


def inventory(told: str | dict[str, Any]) -> Inventory:
    """Of a cluster by its name, or of what was read."""
    found = dict(answers(told) if isinstance(told, str) else told)
    if not isinstance(found["attachments"], NotKnown):
        found["attachments"] = ListedNetworks(items=mappings(found["attachments"].get("items")))
    return inventory_of(ClusterAnswers(**found))
