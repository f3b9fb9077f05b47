"""`broadgauge init`: with which experiment can I begin on this machine, or on a cluster?"""

import argparse
import os.path
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broadgauge.running.own_entry import OwnEntry
    from broadgauge.specs.errors import InputError

STDOUT = "-"
_KEPT = "name another file, or `-` to print the experiment"
_MAP_KEPT = "an address map stands beside its experiment: name a FILE in another folder"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "init",
        help="write an experiment for this machine, or for a cluster",
        description="Writes a commented experiment that suits this machine: its GPUs, paths and "
        "NICs. With --command your own script is what is measured. With --from-cluster one for "
        "a Kubernetes cluster: its nodes, GPUs and networks, and an address map where one is "
        "needed. A file that is there already is kept.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="experiment.yaml",
        help="where to write it (default: experiment.yaml); `-` prints it",
    )
    parser.add_argument(
        "--command",
        metavar="COMMAND",
        help="your own script is the workload, as you start it: 'torchrun train.py --epochs 1'",
    )
    parser.add_argument(
        "--metric",
        metavar="NAME=REGEX",
        action="append",
        default=[],
        help="with --command: a number that it prints, the regular expression's first group "
        "(default: README's `step 12 took 0.3 s`)",
    )
    parser.add_argument(
        "--from-cluster",
        action="store_true",
        help="for the cluster of your kubeconfig, as its API describes it; it is only read",
    )
    parser.add_argument(
        "--context",
        metavar="NAME",
        help="with --from-cluster: of your kubeconfig (default: the current one)",
    )
    parser.add_argument(
        "--namespace",
        metavar="NAME",
        help="with --from-cluster: where pods will be (default: the context's)",
    )
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    if options.file != STDOUT and os.path.lexists(options.file):
        raise _is_kept(Path(options.file), _KEPT)  # before a cluster is asked for all it has
    _check_together(options)
    if options.from_cluster:
        return _from_cluster(options)
    from broadgauge.platforms.machine import read_machine
    from broadgauge.running.first_experiment import first_experiment

    if options.command is not None:
        return _of_own_command(options)
    _write({options.file: first_experiment(read_machine())})
    return 0


def _check_together(options: argparse.Namespace) -> None:
    """Raises InputError for flags that do not go together."""
    from broadgauge.specs.errors import InputError

    if options.command is None and options.metric:
        raise InputError("--metric belongs to --command", hint="--command 'torchrun train.py'")
    if options.from_cluster and options.command is not None:
        raise InputError(
            "--command is for this machine, not for --from-cluster",
            hint="the file for a cluster has such an entry as a comment",
        )
    is_named = options.context is not None or options.namespace is not None
    if is_named and not options.from_cluster:
        raise InputError("--context and --namespace belong to --from-cluster", hint="add it")


def _of_own_command(options: argparse.Namespace) -> int:
    from broadgauge.platforms.machine import read_machine
    from broadgauge.running.experiments import find_model
    from broadgauge.running.first_experiment import first_experiment
    from broadgauge.specs.text.reading import read_experiment

    text = first_experiment(read_machine(), _own_entry(options))
    name = "experiment.yaml" if options.file == STDOUT else options.file
    # the command may have set a variable that is the launcher's
    read_experiment(text, name, find_model=find_model)
    _write({options.file: text})
    return 0


def _own_entry(options: argparse.Namespace) -> "OwnEntry":
    """What `--command` and `--metric` say. Raises InputError."""
    from broadgauge.cli.output import say
    from broadgauge.running.own_command import read_command
    from broadgauge.running.own_entry import OwnEntry, read_metrics

    command, metrics = read_command(options.command), read_metrics(options.metric)
    if command.left_out:
        named = ", ".join(command.left_out)
        say(f"left out   {named}: `cluster.shapes` and Broadgauge say how ranks start and meet")
    if not metrics:
        say("metric     README's regex: make it that of a line that your script prints")
    folder = os.path.relpath(".", "." if options.file == STDOUT else Path(options.file).parent)
    return OwnEntry(command=command, metrics=metrics, folder=None if folder == "." else folder)


def _from_cluster(options: argparse.Namespace) -> int:
    from broadgauge.cli.output import say, say_facts
    from broadgauge.platforms.kubernetes.extra import check_extra
    from broadgauge.specs.errors import InputError
    from broadgauge.specs.kubernetes.names import LabelName, is_name

    check_extra()
    from broadgauge.platforms.kubernetes.api import Api
    from broadgauge.platforms.kubernetes.inventory.inventory_reading import read_inventory
    from broadgauge.running.first_experiment_on_cluster import first_experiment_on_cluster
    from broadgauge.running.first_networks import MAP_FILE

    api = Api.connect(options.context)
    namespace = options.namespace if options.namespace is not None else api.default_namespace
    if not is_name(namespace, LabelName):
        raise InputError(f"`{namespace}` is no name of a namespace", hint="--namespace training")
    found = first_experiment_on_cluster(
        read_inventory(api, namespace),
        cluster=api.context or api.server,
        namespace=namespace,
        context=options.context,
    )
    say_facts(f"missing    {words}" for words in found.missing)
    say_facts(f"note       {words}" for words in found.notes)
    files = {options.file: found.text}
    if found.address_map is not None and options.file == STDOUT:
        say(f"missing    {MAP_FILE}: name a FILE, and it is written beside it")
    elif found.address_map is not None:
        files[str(Path(options.file).with_name(MAP_FILE))] = found.address_map
    _write(files)
    return 0


def _write(files: dict[str, str]) -> None:
    """The experiment, which comes first, and what stands beside it; all or none. InputError."""
    import shlex

    from broadgauge.cli.output import program, say, write

    experiment = next(iter(files))
    if experiment == STDOUT:
        write(files[experiment])
        return
    written: list[Path] = []
    try:
        for name, text in files.items():
            write_new(Path(name), text, hint=_KEPT if name == experiment else _MAP_KEPT)
            written.append(Path(name))
    except BaseException:
        for path in written:
            path.unlink()
        raise
    for name in files:
        say(f"wrote      {name}")
    say(f"look at it {program()} run {shlex.quote(experiment)} --dry-run")


def write_new(path: Path, text: str, *, hint: str = _KEPT) -> None:
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
        raise _is_kept(path, hint) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"`{path}` can't be written: {reason}") from None


def _is_kept(path: Path, hint: str) -> "InputError":
    from broadgauge.specs.errors import InputError

    return InputError(f"`{path}` is there already, and is kept", hint=hint)
