"""Builds the programs of emulated storages into the cache, or says what is missing.

    python3 scripts/storage_tools build [--jobs N] [--keep]
    python3 scripts/storage_tools --there

From nothing it takes minutes, the Go proxy and Python's standard library.
"""

import argparse
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[2])

from scripts.control_plane.building import available_cores  # noqa: E402
from scripts.control_plane.go_tool import BuildError  # noqa: E402
from scripts.storage_tools import building, recipes  # noqa: E402


def say(line: str) -> None:
    print(f"storage tools: {line}", flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/storage_tools", description=__doc__)
    parser.add_argument("--there", action="store_true", help="exit code 0 when nothing is missing")
    commands = parser.add_subparsers(dest="command")
    build = commands.add_parser("build", help="build what is missing")
    build.add_argument("--jobs", type=int, default=available_cores())
    build.add_argument("--keep", action="store_true", help="what Go compiled, for the next build")
    parsed = parser.parse_args(arguments)
    if not parsed.there and parsed.command is None:
        parser.error("say build or --there")
    return parsed


def main() -> int:
    """The exit code."""
    parsed, cache = parse(sys.argv[1:]), recipes.cache_folder()
    if parsed.there:
        lacking = recipes.missing(cache.resolve())
        for program in lacking:
            say(f"{cache / program.folder_name()} is missing")
        return 1 if lacking else 0
    try:
        building.build(cache, jobs=parsed.jobs, keep=parsed.keep, say=say)
    except BuildError as failure:
        say(f"FAILED: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
