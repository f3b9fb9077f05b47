"""What does a piece of JSON hold, whoever wrote it? What is of another shape says nothing."""

from typing import Any

JsonMap = dict[str, Any]


def mapping(value: object) -> JsonMap:
    """An object; empty where it is none."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[JsonMap]:
    """The objects of a list; empty where it is none."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(value: object) -> str | None:
    """None: empty, or no text."""
    return value if isinstance(value, str) and value else None


def texts(value: object) -> dict[str, str]:
    """Of an object those values that are texts, as labels and annotations are."""
    return {key: each for key, each in mapping(value).items() if isinstance(each, str)}


def whole(value: object) -> int | None:
    """None: no whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def labels_in(item: JsonMap) -> dict[str, str]:
    """Of an object of Kubernetes."""
    return texts(mapping(item.get("metadata")).get("labels"))
