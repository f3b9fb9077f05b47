"""Which variables does which version of NCCL read? Brings catalog/nccl_variables.yaml up to date.

    python scripts/nccl_variables.py REPOSITORY/.git

Reads every release of a git repository of NVIDIA/nccl from 2.3 on. Names, versions and whether a
variable is a number come from there; kinds that are set, meanings, allowed values and all that
stands below the line of others are kept as the file has them.
"""

import argparse
import io
import re
import subprocess
import tarfile
from pathlib import Path

from ruamel.yaml import YAML

FILE = Path(__file__).parents[1] / "src/broadgauge/catalog/nccl_variables.yaml"
OLDEST = (2, 3)
SUFFIXES = (".c", ".cc", ".cpp", ".cu", ".h")
TAG = re.compile(r"v(\d+)\.(\d+)\.(\d+)-\d+")
PARAMETER = re.compile(r'\bNCCL_PARAM\(\s*\w+\s*,\s*"(\w+)"')
TYPED = re.compile(r"\bDEFINE_NCCL_PARAM\(\s*\w+\s*,\s*([\w:<> *]+?)\s*,\s*(NCCL_\w+)")
LITERAL = re.compile(r'"(NCCL_[A-Z0-9_]+)"')
FOLDERS = ("src", "plugins", "ext-net", "ext-tuner", "ext-profiler")
OF_PLUGINS = re.compile(r'getenv\(\s*"(NCCL_[A-Z0-9_]+)"')
NO_VARIABLES = re.compile(
    r"NCCL_(.*_INITIALIZER|GIN_CONNECTION_.*|VERSION|MAJOR|MINOR|PATCH|SUFFIX|HOME|INCLUDE_.*)"
)
OTHERS = "# Not of NCCL itself.\n"
INTEGERS = ("int", "uint", "bool", "size_t", "long")


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    repository = parser.parse_args().repository
    seen: dict[str, tuple[str, str, str]] = {}
    for version, tag in releases(repository):
        for name, kind in variables_of(repository, tag).items():
            first, _, before = seen.get(name, (version, version, kind))
            seen[name] = (first, version, kind if before == kind else "text")
    write(seen)


def releases(repository: Path) -> list[tuple[str, str]]:
    """Version and tag, oldest first."""
    told = git(repository, "tag").decode().split()
    matches = [match for match in map(TAG.fullmatch, told) if match is not None]
    numbers = {tuple(int(part) for part in match.groups()): match[0] for match in matches}
    return [
        (".".join(map(str, version)), tag)
        for version, tag in sorted(numbers.items())
        if version >= OLDEST
    ]


def variables_of(repository: Path, tag: str) -> dict[str, str]:
    """Name → `integer` or `text`, as this release reads it."""
    top = git(repository, "ls-tree", "--name-only", tag).decode().split()
    folders = [folder for folder in FOLDERS if folder in top]
    found: dict[str, str] = {}
    with tarfile.open(fileobj=io.BytesIO(git(repository, "archive", tag, *folders))) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(SUFFIXES) else None
            if file is not None:
                read_source(file.read().decode(errors="replace"), member.name, found)
    return found


def read_source(text: str, path: str, found: dict[str, str]) -> None:
    """Add what one file reads."""
    if not path.startswith("src/"):
        found |= dict.fromkeys(OF_PLUGINS.findall(text), "text")
        return
    found |= {f"NCCL_{name}": "integer" for name in PARAMETER.findall(text)}
    for kind, name in TYPED.findall(text):
        found[name] = "integer" if kind.startswith(INTEGERS) else "text"
    for name in LITERAL.findall(text):
        if not NO_VARIABLES.fullmatch(name):
            found.setdefault(name, "text")


def git(repository: Path, *words: str) -> bytes:
    """What git prints."""
    command = ["git", f"--git-dir={repository}", *words]
    return subprocess.run(command, check=True, capture_output=True).stdout


def write(seen: dict[str, tuple[str, str, str]]) -> None:
    """Entries of NCCL, by name; those of others stay as they are."""
    text = FILE.read_text(encoding="utf-8")
    kept = {entry["name"]: dict(entry) for entry in YAML().load(text)["nccl_variables"]}
    lines = [text.partition("nccl_variables:\n")[0], "nccl_variables:\n"]
    for name, (first, last, kind) in sorted(seen.items()):
        own = kept.pop(name, {})
        entry = {"name": name, "reader": "nccl", "first": first, "last": last, "kind": kind}
        rest = {key: value for key, value in own.items() if key not in entry}
        if "kind" in own:
            entry["kind"] = own["kind"]  # a release that reads it with strtol is not all of them
        lines.append(line_of({**entry, **rest}))
    others = text.partition(OTHERS)
    FILE.write_text("".join(lines) + others[1] + others[2], encoding="utf-8")


def line_of(entry: dict[str, object]) -> str:
    """`  - {name: …}`; versions are quoted, since 2.30 is no number."""
    return "  - {" + ", ".join(f"{key}: {shown(value)}" for key, value in entry.items()) + "}\n"


def shown(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(shown(each) for each in value) + "]"
    text = str(value)
    return text if re.fullmatch(r"[A-Za-z_*][A-Za-z0-9_*]*", text) else f'"{text}"'


if __name__ == "__main__":
    main()
