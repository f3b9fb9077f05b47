"""`broadgauge init`: with which experiment can I begin on this machine, or on a cluster?"""

import argparse
from pathlib import Path
from typing import Any

STDOUT = "-"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "init",
        help="write an experiment for this machine, or for a cluster",
        description="Writes a commented experiment that suits this machine: its GPUs, paths and "
        "NICs. With --from-cluster one for a Kubernetes cluster: its nodes, GPUs and networks, and "
        "an address map where one is needed. A file that is there already is kept.",
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
        "--from-cluster",
        action="store_true",
        help="for the cluster of your kubeconfig, as its API describes it; nothing is changed",
    )
    parser.add_argument("--context", metavar="NAME", help="of the kubeconfig; default: its own")
    parser.add_argument("--namespace", metavar="NAME", help="default: your kubeconfig's")
    parser.add_argument("--out", metavar="FILE", help="the same as FILE")
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    from broadgauge.cli.output import write
    from broadgauge.specs.errors import InputError

    if not options.from_cluster and (options.context or options.namespace):
        raise InputError("--context and --namespace are of --from-cluster", hint="add it")
    target = options.out or options.file
    if options.from_cluster:
        return _from_cluster(options, target)
    from broadgauge.platforms.machine import read_machine
    from broadgauge.running.first_experiment import first_experiment

    text = first_experiment(read_machine())
    if target == STDOUT:
        write(text)
        return 0
    path = Path(target)
    write_new(path, text)
    _say_written(path)
    return 0


def _from_cluster(options: argparse.Namespace, target: str) -> int:
    from broadgauge.cli.output import say, write
    from broadgauge.platforms.kubernetes.extra import check_extra

    check_extra()
    from broadgauge.platforms.kubernetes.api import Api
    from broadgauge.platforms.kubernetes.cluster_experiment import MAP_FILE, cluster_experiment
    from broadgauge.platforms.kubernetes.inventory_reading import read_inventory

    api = Api.connect(options.context)
    namespace = options.namespace or api.default_namespace
    found = cluster_experiment(
        read_inventory(api, namespace),
        name=api.context or api.server,
        namespace=namespace,
        context=options.context,
    )
    for words in found.missing:
        say(f"missing    {words}")
    if target == STDOUT:
        write(found.text)
        if found.address_map is not None:
            say(f"missing    {MAP_FILE}: name a file, and it is written beside it")
        return 0
    path = Path(target)
    write_new(path, found.text)
    if found.address_map is not None:
        map_path = path.with_name(MAP_FILE)
        write_new(map_path, found.address_map)
        say(f"wrote      {map_path}")
    _say_written(path)
    return 0


def _say_written(path: Path) -> None:
    import shlex

    from broadgauge.cli.output import program, say

    say(f"wrote      {path}")
    say(f"look at it {program()} run {shlex.quote(str(path))} --dry-run")


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
