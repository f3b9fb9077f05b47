"""What does `{storage.data}` stand for in a command's words? A folder, or a URL, of its storage."""

import re
from pathlib import PurePosixPath

from broadgauge.messages.storage import StoragePlace

KNOWN = ("data", "model", "checkpoints")
"""Each a folder of the storage, or a prefix of its bucket."""
_PLACEHOLDER = re.compile(r"\{storage\.([^{}\s]*)\}")


class UnknownPlaceholderError(ValueError):
    """`{storage.…}` of something that a storage does not have."""

    def __init__(self, name: str) -> None:
        known = ", ".join(f"{{storage.{each}}}" for each in KNOWN)
        super().__init__(f"`{{storage.{name}}}` stands for nothing: there are {known}")
        self.name = name


def placeholders(text: str) -> tuple[str, ...]:
    """What the text wants of its storage, known or not: `data`, `model`."""
    return tuple(_PLACEHOLDER.findall(text))


def part_of(place: StoragePlace, name: str) -> str:
    """A folder, or a URL where the storage is no folder. Raises UnknownPlaceholderError."""
    if name not in KNOWN:
        raise UnknownPlaceholderError(name)
    if place.folder is not None:
        return str(PurePosixPath(place.folder) / name)
    assert place.objects is not None, "a place is a folder or a bucket"
    parts = (place.objects.bucket, place.objects.prefix.strip("/"), name)
    return "s3://" + "/".join(part for part in parts if part)


def filled(text: str, place: StoragePlace) -> str:
    """With each placeholder's folder or URL in its place. Raises UnknownPlaceholderError."""
    return _PLACEHOLDER.sub(lambda found: part_of(place, found.group(1)), text)
