"""What does an experiment that extends another one say, all together?

The file that extends wins. Mappings merge key by key; entries of `networks`, `workloads` and
`hypotheses` merge with the entry of the same name; other lists and single values are replaced.
"""

from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from broadgauge.specs.errors import ExperimentError, InputError, Problem
from broadgauge.specs.text.document import Assembly, Document, KeyPath, outlived
from broadgauge.specs.text.like import NAMES_MODEL, in_full
from broadgauge.specs.text.yaml_source import parse_yaml

EXTENDS = "extends"
MERGED_BY_NAME = ("networks", "storages", "workloads", "hypotheses")
MAX_CHAIN = 16
"""Files that extend one another."""


class BaseReader(Protocol):
    """Finds what a file extends; files are its affair, and none of this module's."""

    def __call__(self, reference: str, from_file: str) -> tuple[str, str]:
        """Of what stands under `extends` and the name of the file it stands in: the text meant, and
        its file's name, which may be one of several. Raises InputError where there is none."""
        ...

    def identity(self, filename: str) -> str:
        """The same for all names of one file."""
        ...


def with_bases(document: Document, read_base: BaseReader | None) -> Document:
    """The experiment and all that it extends, as one; each part keeps the place it was written at.

    Raises ExperimentError where a base can't be had, or the files extend one another in a circle.
    """
    chain = [document]
    while isinstance(chain[-1].data, dict) and EXTENDS in chain[-1].data:
        chain.append(_base_of(chain, read_base))
    merged = chain.pop()
    while chain:
        merged = _Merging(base=merged, child=chain.pop()).document()
    return merged


def _base_of(chain: list[Document], read_base: BaseReader | None) -> Document:
    """What the last file of the chain extends."""
    last = chain[-1]
    reference = last.data[EXTENDS]
    if not isinstance(reference, str) or not reference.strip():
        _refuse(last, "takes the name of an example, or the path of one file")
    if read_base is None:
        _refuse(last, "is not resolved here: an experiment's text alone was given")
    try:
        text, filename = read_base(reference, last.filename)
    except InputError as error:
        _refuse(last, error.message, error.hint)
    names = [document.filename for document in chain]
    files = [read_base.identity(name) for name in names]
    if (file := read_base.identity(filename)) in files:
        circle = " → ".join([*names[files.index(file) :], filename])
        _refuse(last, f"goes in a circle: {circle}")
    if len(chain) > MAX_CHAIN:
        _refuse(last, f"is a chain of more than {MAX_CHAIN} files")
    return parse_yaml(text, filename)


def _refuse(document: Document, message: str, hint: str | None = None) -> NoReturn:
    where = document.where((EXTENDS,))
    raise ExperimentError([Problem(where, f"`{EXTENDS}`: {message}", hint)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merging:
    """One experiment over the one that it extends."""

    base: Document
    child: Document

    def document(self) -> Document:
        """Raises ExperimentError where one of them is no mapping."""
        for each in (self.base, self.child):
            if not isinstance(each.data, dict):
                message = "an experiment is a mapping of keys to values"
                raise ExperimentError([Problem(each.where(()), message)])
        assembly = Assembly()
        child = {key: value for key, value in self.child.data.items() if key != EXTENDS}
        data = self._mapping(assembly, (self.base.data, ()), (child, ()), ())
        return assembly.document(self.child.filename, data)

    def _mapping(
        self,
        assembly: Assembly,
        base: tuple[dict[str, Any], KeyPath],
        child: tuple[dict[str, Any], KeyPath],
        to: KeyPath,
    ) -> dict[str, Any]:
        """Key by key; each side is a mapping and where it stands in its document."""
        (old, old_at), (new, new_at) = base, child
        assembly.place(self.child, at=new_at, to=to)
        merged: dict[str, Any] = {}
        old = {key: value for key, value in old.items() if key not in outlived(new, to)}
        for key in old | new:
            path = (*to, key)
            if key not in new:
                merged[key] = assembly.take(self.base, old[key], at=(*old_at, key), to=path)
            elif key not in old:
                merged[key] = assembly.take(self.child, new[key], at=(*new_at, key), to=path)
            else:
                here = (old[key], (*old_at, key)), (new[key], (*new_at, key))
                merged[key] = self._value(assembly, *here, path)
        return merged

    def _value(
        self, assembly: Assembly, base: tuple[Any, KeyPath], child: tuple[Any, KeyPath], to: KeyPath
    ) -> Any:
        """Both have it: merged where that means something, else as the child has it."""
        (old, old_at), (new, at) = base, child
        if isinstance(new, dict) and isinstance(full := in_full(old, to), dict):
            merged = self._mapping(assembly, (full, old_at), child, to)
            if full is not old and NAMES_MODEL not in new:
                assembly.place(self.base, at=old_at, to=(*to, NAMES_MODEL))
            return merged
        is_named = len(to) == 1 and to[0] in MERGED_BY_NAME
        if is_named and isinstance(old, list) and isinstance(new, list):
            return self._entries(assembly, old, new, str(to[0]))
        return assembly.take(self.child, new, at=at, to=to)

    def _entries(self, assembly: Assembly, old: list[Any], new: list[Any], key: str) -> list[Any]:
        """The base's in their order, each merged with the child's of its name; then new ones."""
        assembly.place(self.child, at=(key,), to=(key,))
        places = _places_by_name(old)
        merged = [
            assembly.take(self.base, entry, at=(key, i), to=(key, i)) for i, entry in enumerate(old)
        ]
        for i, entry in enumerate(new):
            place = places.pop(_name(entry), None)
            if place is not None and _is_alike(old[place], entry):
                base, child = (old[place], (key, place)), (entry, (key, i))
                merged[place] = self._mapping(assembly, base, child, (key, place))
                continue
            to = len(merged) if place is None else place
            taken = assembly.take(self.child, entry, at=(key, i), to=(key, to))
            merged[to:] = [taken, *merged[to + 1 :]]
        return merged


def _places_by_name(entries: list[Any]) -> dict[str | None, int]:
    places = {_name(entry): i for i, entry in enumerate(entries)}
    places.pop(None, None)
    return places


def _name(entry: Any) -> str | None:
    """A workload without a name has that of its kind."""
    name = entry.get("name", entry.get("kind")) if isinstance(entry, dict) else None
    return name if isinstance(name, str) else None


def _is_alike(old: Any, new: Any) -> bool:
    """Can keys of one stand in the other? A workload of another kind replaces the base's."""
    kind = old.get("kind")
    phase = old.get("phase")
    return bool(new.get("kind", kind) == kind and new.get("phase", phase) == phase)
