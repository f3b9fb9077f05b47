"""A patch applied as RFC 6902 says, as far as ours go: `add` and `replace`."""

import copy
from typing import Any


def applied(document: Any, operations: list[dict[str, Any]]) -> Any:
    """A changed copy. Raises KeyError and IndexError for a place that is not there."""
    changed = copy.deepcopy(document)
    for operation in operations:
        *path, last = [
            word.replace("~1", "/").replace("~0", "~") for word in operation["path"].split("/")[1:]
        ]
        place = changed
        for word in path:
            place = place[int(word)] if isinstance(place, list) else place[word]
        if isinstance(place, list) and last == "-":
            assert operation["op"] == "add"
            place.append(operation["value"])
        elif isinstance(place, list):
            assert operation["op"] == "replace"
            place[int(last)] = operation["value"]
        else:
            assert operation["op"] == "add" or last in place  # `add` of a member may replace it
            place[last] = operation["value"]
    return changed
