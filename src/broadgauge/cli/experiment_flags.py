"""`--set` and `--on`: what is changed of an experiment's file, and where is it run?"""

import argparse
from collections.abc import Sequence

PLATFORMS = ("emulated", "local", "hosts", "kubernetes")
"""As `platform` takes them; types of experiments are not imported for `--help`."""


def add_set_flag(parser: argparse.ArgumentParser, example: str) -> None:
    """Declares `--set`, whose values are in `overrides`; `example` is one for this command."""
    parser.add_argument(
        "--set",
        dest="overrides",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help=f"change a part of the experiment: {example}",
    )


def add_on_flag(parser: argparse.ArgumentParser, platforms: Sequence[str] = PLATFORMS) -> None:
    """Declares `--on`, with those platforms that this command knows."""
    parser.add_argument(
        "--on", choices=platforms, help="run it there, whatever `platform` its file names"
    )


def overrides(options: argparse.Namespace) -> list[str]:
    """What both say, in the form of `--set`; `--on` comes last and wins."""
    on = [] if options.on is None else [f"platform={options.on}"]
    return [*options.overrides, *on]
