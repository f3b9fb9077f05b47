"""`broadgauge render`: the manifests that run an experiment on a cluster."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadgauge.cli.experiment_flags import add_set_flag

if TYPE_CHECKING:
    from broadgauge.manifests.rendering import Rendered

JOB_KINDS = ("job", "pytorchjob", "trainjob")
"""As `kubernetes.job` takes them; types of experiments are not imported for `--help`."""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "render",
        help="write the manifests that run an experiment on a cluster",
        description="Writes what runs an experiment on Kubernetes or OpenShift: manifests that can "
        "be read, committed and applied without Broadgauge, one job a case. The same file gives "
        "the same bytes. No cluster is asked.",
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
        choices=("kubernetes",),
        default="kubernetes",
        help="what they are for",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write files there, instead of printing them"
    )
    parser.add_argument(
        "--job",
        choices=JOB_KINDS,
        help="what the pods belong to, in the place of the experiment's `kubernetes.job`",
    )
    parser.add_argument(
        "--rbac",
        action="store_true",
        help="print in their place the least Role that applies, follows and removes the jobs",
    )
    add_set_flag(parser, "--set kubernetes.namespace=training")
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    """Results to stdout or files; what is to be known of them to stderr."""
    from broadgauge.cli.output import say, say_facts, write
    from broadgauge.manifests.files import to_yaml
    from broadgauge.report.lines.rendered import rendered_lines
    from broadgauge.running.experiments import load
    from broadgauge.running.rendering.experiment import ON_KUBERNETES, render_experiment
    from broadgauge.running.rendering.rights import rights_of
    from broadgauge.running.rendering.written_folder import write_rendered
    from broadgauge.specs.errors import InputError

    kind = () if options.job is None else (f"kubernetes.job={options.job}",)
    loaded = load(options.experiment, (*options.overrides, *kind, ON_KUBERNETES))
    if options.rbac:
        if options.out is not None:
            raise InputError(
                "--rbac prints one file", hint="leave --out out: `--rbac > rights.yaml`"
            )
        write(to_yaml(rights_of(loaded)))
        return 0
    found = render_experiment(loaded)
    rendered = found.rendered
    if options.out is None:
        write(_printed(rendered))
    else:
        files = (*rendered.files, *rendered.kustomizations)
        texts = {file.path: to_yaml(file) for file in files}
        removed = write_rendered(texts, options.out, f"the experiment {found.jobs[0].prefix}")
        say(f"wrote      {len(files)} files below {options.out}")
        for path in removed:
            say(f"removed    {path}")
    say_facts(rendered_lines(loaded.experiment, found, options.out))
    return 0


def _printed(rendered: "Rendered") -> str:
    """One stream for `kubectl apply --filename -`; each file is named before its own comment."""
    from broadgauge.manifests.files import to_yaml

    return "".join(f"# {file.path}\n{to_yaml(file)}" for file in rendered.files)
