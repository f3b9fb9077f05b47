"""`broadgauge cleanup`: what have runs left in a cluster, and away with it."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broadgauge.running.cleaning import CleaningPlace, Leftover, Leftovers

_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""What a label may hold. Source: Kubernetes, "Labels and Selectors"."""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "cleanup",
        help="remove what runs have left in a cluster",
        description="Lists what runs have left in a namespace, and with RUN or --all deletes it: "
        "objects that bear Broadgauge's labels, and nothing else. Claims stay: they hold data. "
        "--all leaves runs that may be running, and other people's. What was rendered and applied "
        "belongs to no run: `kubectl delete` removes it.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        help="a run folder, `last`, `last~1`, or a run's name as it is listed",
    )
    parser.add_argument(
        "--on", choices=("kubernetes",), default="kubernetes", help="where (default: kubernetes)"
    )
    parser.add_argument("--all", action="store_true", help="delete what your ended runs have left")
    parser.add_argument(
        "--running", action="store_true", help="with --all: runs with unfinished pods, too"
    )
    parser.add_argument(
        "--of-others", action="store_true", help="with --all: runs of other users and hosts, too"
    )
    parser.add_argument(
        "--namespace", metavar="NAME", help="default: the run's, else your kubeconfig's"
    )
    parser.add_argument(
        "--context", metavar="NAME", help="default: the run's, else your kubeconfig's"
    )
    parser.add_argument("--dry-run", action="store_true", help="list it, and delete nothing")
    parser.add_argument(
        "--runs-folder",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where runs are stored (default: runs)",
    )
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    from broadgauge.cli.output import say_sentence, write_sentence
    from broadgauge.platforms.kubernetes.extra import check_extra

    check_extra()
    from broadgauge.specs.errors import ExitCode, InputError

    if options.run is not None and options.all:
        raise InputError("RUN is one, and --all is every run", hint="leave one of them out")
    if (options.running or options.of_others) and not options.all:
        raise InputError("--running and --of-others say what --all deletes, too", hint="--all")
    folder = _folder(options)
    meant = _place(options, folder)
    if meant is None:
        say_sentence(f"{folder} names no job in a cluster: it deleted its own, or ran elsewhere")
        return ExitCode.OK
    place, name = meant
    found = place.leftovers(name)
    if name is not None and folder is None and not found.runs and not found.unseen:
        _check_known(place, name, options.runs_folder)
    is_gone = True
    for leftover in found.runs:
        write_sentence(f"{leftover.run} ({leftover.words}): {', '.join(leftover.objects)}")
        kept = _why_kept(leftover, options)
        if kept is not None and (name is not None or options.all):
            say_sentence(f"{leftover.run} is left: {kept}")
        elif name is not None or options.all:
            is_gone = _remove(place, leftover, is_dry_run=options.dry_run) and is_gone
    _say_what_is_left(place, name, found)
    if found.runs and name is None and not options.all:
        say_sentence(
            "delete one with `broadgauge cleanup RUN`, your ended ones with --all; claims stay"
        )
    return ExitCode.OK if is_gone and not found.unseen else ExitCode.PLATFORM_REFUSED


def _remove(place: "CleaningPlace", leftover: "Leftover", *, is_dry_run: bool) -> bool:
    """False: it can't be told whether all is gone, which is said."""
    from broadgauge.cli.output import say_sentence, write_sentence

    where = f"run {leftover.run} in namespace {place.namespace}"
    if is_dry_run:
        write_sentence(f"not deleted, with --dry-run: {where}")
        return True
    if not place.remove(leftover, say_sentence):
        return False
    write_sentence(f"deleted all that was left of {where}")
    return True


def _say_what_is_left(place: "CleaningPlace", name: str | None, found: "Leftovers") -> None:
    """Where nobody could look, or that there is nothing."""
    from broadgauge.cli.output import say_sentence

    if found.unseen:
        listed = "".join(f"\n  {each}" for each in found.unseen)
        say_sentence(f"there may be more of ours, of kinds that could not be listed:{listed}")
    elif not found.runs:
        whose = "ours" if name is None else f"run {name}"
        say_sentence(f"nothing of {whose} is left in namespace {place.namespace}")


def _why_kept(leftover: "Leftover", options: argparse.Namespace) -> str | None:
    """None: it is deleted. A run that is named is meant."""
    is_named = options.run is not None
    return leftover.why_kept(
        running=is_named or options.running, of_others=is_named or options.of_others
    )


def _folder(options: argparse.Namespace) -> Path | None:
    """Of the run that is meant; None: all are, or it is named by its label. Raises InputError,
    RunFolderError."""
    from broadgauge.results.run_path import is_relative_to_last, run_path
    from broadgauge.specs.errors import InputError

    name: str | None = options.run
    if name is None:
        return None
    stored: Path = options.runs_folder / name
    if is_relative_to_last(name) or name.startswith("last~") or _is_folder(Path(name)):
        return run_path(name, options.runs_folder)
    if _is_folder(stored):
        return stored
    if not _LABEL.fullmatch(name):
        raise InputError(
            f"{name!r} is no run folder, and no name of a run as it is listed",
            hint="`broadgauge cleanup` without RUN lists what is there",
        )
    return None


def _place(
    options: argparse.Namespace, folder: Path | None
) -> "tuple[CleaningPlace, str | None] | None":
    """Where to look, and the label of the run that is meant; None: its folder names no job.
    Raises InputError, RunFolderError."""
    from broadgauge.running.cleaning import check_is_not_followed, cleaning_place, place_of_run

    context, namespace = options.context, options.namespace
    if folder is None:
        return cleaning_place(context, namespace), options.run
    if not options.dry_run:
        check_is_not_followed(folder)
    return place_of_run(folder, context, namespace)


def _is_folder(path: Path) -> bool:
    """A name that no file can have is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _check_known(place: "CleaningPlace", name: str, runs_folder: Path) -> None:
    """Raises InputError where nothing bears this name, and no run of the folder had it there."""
    from broadgauge.running.cleaning import labels_of_runs
    from broadgauge.specs.errors import InputError
    from broadgauge.wording.near_words import did_you_mean

    stored = labels_of_runs(runs_folder)
    if name in stored.values():
        return
    known = [each.run for each in place.leftovers(None).runs]
    raise InputError(
        f"no run `{name}` has left anything in namespace {place.namespace}",
        hint=did_you_mean(name, [*known, *stored])
        or "`broadgauge cleanup` without RUN lists what is there",
    )
