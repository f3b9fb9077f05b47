"""`broadgauge patch`: another network for a job that is written already."""

import argparse
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "patch",
        help="put a job's manifest on another network, by an overlay",
        description="Writes an overlay of Kustomize that puts a Job, PyTorchJob or TrainJob of "
        "yours on a network: its pods' annotation, and resources and variables of the containers "
        "that train, and nothing else. The manifest itself is copied as it is. No cluster is "
        "asked.",
        allow_abbrev=False,
    )
    parser.add_argument("manifest", metavar="MANIFEST", type=Path, help="a YAML file with the job")
    parser.add_argument(
        "--network",
        metavar="NAME",
        required=True,
        help="`pod`: the cluster's own; a NetworkAttachmentDefinition, `rdmashared-net`; or a "
        "network of --experiment",
    )
    parser.add_argument(
        "--resource",
        metavar="NAME",
        help="RDMA over that definition's NIC, by this resource: rdma/rdma_shared_device_eth",
    )
    parser.add_argument(
        "--experiment", metavar="EXPERIMENT", help="an experiment that has a network of this name"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write files there (default: the manifest's name with `-overlays`)",
    )
    parser.set_defaults(handler=handle)


def handle(options: argparse.Namespace) -> int:
    from broadgauge.cli.output import say, say_facts
    from broadgauge.running.rendering.patch import folder_word, overlay
    from broadgauge.running.rendering.wanted_network import WantedNetwork
    from broadgauge.running.rendering.written_folder import write_rendered

    wanted = WantedNetwork(
        name=options.network, experiment=options.experiment, resource=options.resource
    )
    found = overlay(options.manifest, wanted)
    out = options.out or Path(f"{options.manifest.stem}-overlays")
    folder = folder_word(options.network)
    own = f"overlays/{folder}/"
    removed = write_rendered(
        found.texts,
        out,
        f"the manifest {options.manifest.name}",
        is_kept=lambda path: path.startswith("overlays/") and not path.startswith(own),
    )
    say(f"wrote      {len(found.texts)} files below {out}")
    for path in removed:
        say(f"removed    {path}")
    for patch in found.patches:
        changes = patch.changes or (f"{patch.kind} {patch.name}: nothing has to change",)
        say_facts(f"patch      {change}" for change in changes)
    say_facts(f"needs      {each}" for each in found.needs)
    say_facts(f"note       {each}" for each in found.notes)
    say(f"apply      kubectl apply -k {out / 'overlays' / folder}")
    return 0
