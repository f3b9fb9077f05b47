"""What is one rendered file: objects in the order to apply, and what is said of them?"""

from dataclasses import dataclass
from textwrap import fill

from broadgauge.manifests.yaml_text import Manifest, yaml_text

COMMENT_COLUMNS = 98


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """A file of objects that are applied together."""

    path: str
    """In the folder that is applied: `30-storage/claims.yaml`."""
    comment: str
    """What it is for, and where its values come from; each line a paragraph."""
    objects: tuple[Manifest, ...]


def to_yaml(file: ManifestFile) -> str:
    """The file's text: the comment, then each object behind `---`. Equal objects, equal bytes."""
    documents = (f"---\n{yaml_text(each)}" for each in file.objects)
    return comment_lines(file.comment) + "".join(documents)


def comment_lines(text: str) -> str:
    """Each line behind `#`; what could end a comment early is replaced."""
    shown = ["".join(map(_shown, line)) for line in text.strip().split("\n")]
    wrapped = [
        fill(line, COMMENT_COLUMNS, break_on_hyphens=False, break_long_words=False).split("\n")
        for line in shown
    ]
    return "".join(f"# {line}".rstrip() + "\n" for lines in wrapped for line in lines)


def _shown(character: str) -> str:
    return character if character.isprintable() else "?"
