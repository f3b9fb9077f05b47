"""`broadgauge render`: which manifests or task files run this experiment on a cluster?"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broadgauge.manifests.files import Rendered

KINDS = ("pytorchjob", "trainjob", "jobset", "job")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "render",
        help="write the files that run an experiment on Kubernetes or SkyPilot",
        description="Writes an experiment as files that can be read, committed and applied "
        "without Broadgauge: networks, storage and jobs of Kubernetes, or task files of SkyPilot. "
        "The same file gives the same bytes. No cluster is asked.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "experiment",
        metavar="EXPERIMENT",
        help="an experiment file, or the name of an example such as `quickstart`",
    )
    parser.add_argument(
        "--for",
        dest="target",
        choices=("kubernetes", "skypilot"),
        default="kubernetes",
        help="what they are for (default: kubernetes)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write files there, instead of printing them"
    )
    parser.add_argument(
        "--job",
        choices=KINDS,
        help="what the pods belong to, instead of the experiment's `kubernetes.job`",
    )
    parser.add_argument(
        "--rbac",
        action="store_true",
        help="instead: the least rights that `run --on kubernetes` needs in the namespace",
    )
    parser.add_argument(
        "--set",
        dest="overrides",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change a part of the experiment: --set kubernetes.namespace=training",
    )
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    from broadgauge.cli.output import say, write
    from broadgauge.running.rendered_folder import write_rendered

    rendered = _for_skypilot(options) if options.target == "skypilot" else _for_kubernetes(options)
    for note in rendered.notes:
        say(f"note       {note}")
    if options.out is None:
        write(_printed(rendered))
        return 0
    removed = write_rendered(rendered, options.out)
    for file in rendered.files:
        say(f"wrote      {options.out / file.path}")
    for path in removed:
        say(f"removed    {path}")
    return 0


def _for_kubernetes(options: argparse.Namespace) -> "Rendered":
    from broadgauge.running.experiments import load
    from broadgauge.running.rendering import ON_KUBERNETES, render_experiment, render_rights

    loaded = load(options.experiment, (ON_KUBERNETES, *options.overrides))
    render = render_rights if options.rbac else render_experiment
    return render(loaded, options.job)


def _for_skypilot(options: argparse.Namespace) -> "Rendered":
    from broadgauge.running.experiments import load
    from broadgauge.running.rendering_skypilot import ON_SKYPILOT, render_skypilot
    from broadgauge.specs.errors import InputError

    if options.job is not None or options.rbac:
        raise InputError("--job and --rbac are of Kubernetes", hint="leave them out")
    return render_skypilot(load(options.experiment, (ON_SKYPILOT, *options.overrides)))


def _printed(rendered: "Rendered") -> str:
    """One stream that can be applied; each file is named before its own comment."""
    from broadgauge.manifests.files import to_yaml

    files = (file for file in rendered.files if file.text is None)
    return "".join(f"# {file.path}\n{to_yaml(file)}" for file in files)
