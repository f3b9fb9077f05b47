"""What is one rendered file: objects in the order to apply, and what is said of them?"""

from dataclasses import dataclass

from broadgauge.manifests.yaml_text import Manifest, yaml_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """A file of objects, or of text for people."""

    path: str
    """In the folder that is applied: `20-networks/networks.yaml`."""
    comment: str
    """What it is for, and where its values come from."""
    objects: tuple[Manifest, ...] = ()
    text: str | None = None
    """Instead of objects: README.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Files in the order to apply, and what a reader should know of them."""

    files: tuple[ManifestFile, ...]
    notes: tuple[str, ...] = ()

    @property
    def objects(self) -> tuple[Manifest, ...]:
        """All of them, in that order."""
        return tuple(each for file in self.files for each in file.objects)


def to_yaml(file: ManifestFile) -> str:
    """The file's text: the comment, then each object behind `---`. Equal objects, equal bytes."""
    if file.text is not None:
        return file.text
    documents = (f"---\n{yaml_text(each)}" for each in file.objects)
    return comment_lines(file.comment) + "".join(documents)


def comment_lines(text: str) -> str:
    """Each line behind `#`; what could end a comment early is replaced."""
    lines = text.strip().split("\n")
    return "".join(f"# {''.join(map(_shown, line))}".rstrip() + "\n" for line in lines)


def _shown(character: str) -> str:
    return character if character.isprintable() else "?"
