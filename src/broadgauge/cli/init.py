"""`broadgauge init`: with which experiment can I begin on this machine?"""

import argparse
from pathlib import Path
from typing import Any

STDOUT = "-"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "init",
        help="write an experiment for this machine",
        description="Writes a commented experiment that suits this machine: its GPUs, paths and "
        "NICs. A file that is there already is kept.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="experiment.yaml",
        help="where to write it (default: experiment.yaml); `-` prints it",
    )
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    import shlex

    from broadgauge.cli.output import program, say, write
    from broadgauge.platforms.machine import read_machine
    from broadgauge.running.first_experiment import first_experiment

    text = first_experiment(read_machine())
    if options.file == STDOUT:
        write(text)
        return 0
    path = Path(options.file)
    write_new(path, text)
    say(f"wrote      {path}")
    say(f"look at it {program()} run {shlex.quote(str(path))} --dry-run")
    return 0


def write_new(path: Path, text: str) -> None:
    """The whole file, where there is none yet. Raises InputError."""
    from broadgauge.specs.errors import InputError

    try:
        with path.open("x", encoding="utf-8") as file:
            try:
                file.write(text)
                file.flush()
            except OSError:
                path.unlink()
                raise
    except FileExistsError:
        raise InputError(
            f"`{path}` is there already, and is kept",
            hint="name another file, or `-` to print the experiment",
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"`{path}` can't be written: {reason}") from None
