"""The command `broadgauge`: parses, calls one command's module, and turns errors into words.

`--help` must answer at once, so each command's module imports what it needs inside its `run`.
"""

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

from broadgauge import __version__
from broadgauge.cli import (
    article,
    calibrate,
    catalog,
    cleanup,
    compare,
    data,
    doctor,
    export,
    history,
    import_results,
    init,
    logs,
    patch,
    predict,
    preflight,
    render,
    report,
    run,
    runs,
    schema,
    sensitivity,
    show,
    validate,
    whatif,
)
from broadgauge.cli.command_line import CommandLine
from broadgauge.cli.output import give_up_stdout, open_closed_streams
from broadgauge.engine.interrupts import Interrupt, Interrupts, signals_to
from broadgauge.specs.errors import BroadgaugeError

COMMANDS: tuple[ModuleType, ...] = (
    init,
    preflight,
    run,
    render,
    patch,
    import_results,
    predict,
    sensitivity,
    show,
    doctor,
    compare,
    history,
    runs,
    logs,
    cleanup,
    export,
    report,
    catalog,
    data,
    validate,
    article,
    calibrate,
    whatif,
    schema,
)
BROKEN_PIPE = 141


def make_parser() -> argparse.ArgumentParser:
    """The whole command line; a test holds its help text."""
    parser = CommandLine(
        prog="broadgauge",
        description="Measures how much of your GPUs' time the network takes.",
        epilog="Begin with: broadgauge run quickstart",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"broadgauge {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_parser(subparsers)
    return parser


def _with_signs(arguments: Sequence[str]) -> Iterator[str]:
    """`--fail-above -3%` as one word: argparse would take `-3%` for a flag, and not say why."""
    words = iter(arguments)
    for word in words:
        value = next(words, None) if word == "--fail-above" else None
        if value is None:
            yield word
        elif value[:1] == "-" and value[1:2] in set("0123456789."):
            yield f"{word}={value}"
        else:
            yield from (word, value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit code is documented in specs/errors.py and docs/commands.md."""
    open_closed_streams()
    try:
        words = sys.argv[1:] if arguments is None else arguments
        options = make_parser().parse_args(list(_with_signs(words)))
        return int(options.handler(options))
    except BroadgaugeError as error:
        print(f"broadgauge: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    except KeyboardInterrupt:
        return _interrupted(Interrupt(signal.SIGINT))
    except Interrupt as interrupt:
        return _interrupted(interrupt)
    except BrokenPipeError:
        return BROKEN_PIPE  # the reader of our output left (`| head`): not an error of ours
    finally:
        give_up_stdout()


def _interrupted(interrupt: Interrupt) -> int:
    name = signal.Signals(interrupt.signal_number).name
    print(f"broadgauge: interrupted by {name}", file=sys.stderr)  # noqa: T201
    return interrupt.exit_code


def entry_point() -> None:
    """What the installed command calls. SIGTERM and SIGHUP end it as SIGINT does, in words."""
    interrupts = Interrupts()
    try:
        with signals_to(interrupts):
            code = main()
    except Interrupt as interrupt:  # a second one, while the first was being told
        code = interrupt.exit_code
    except Exception:
        # One that comes while pydantic builds a model is turned into an error of pydantic's.
        if interrupts.requested is None:
            raise
        code = _interrupted(Interrupt(interrupts.requested))
    sys.exit(code)
