"""Experiments to be rendered, and their pods."""

from pathlib import Path
from typing import Any

from broadgauge.manifests.yaml_text import Manifest
from broadgauge.messages.asked_network import AskedNetwork, read_network_word
from broadgauge.running.experiments import examples_folder, load_text
from broadgauge.running.rendering.experiment import (
    ON_KUBERNETES,
    RenderedExperiment,
    render_experiment,
)

EXPERIMENT = """
name: small
kubernetes: {image: "registry.example/train:1"}
cluster: {shapes: [1x2, 2x2]}
networks:
  - {name: pod, rate_gbps: 1, kubernetes: pod}
  - {name: lan, rate_gbps: 10}
workloads:
  - kind: command
    name: mine
    command: [train.py, --steps, "3"]
    metrics: [{name: step_time_s, regex: "t=([0-9.]+)"}]
launches: 2
"""


def rendered(folder: Path, *overrides: str, text: str = EXPERIMENT) -> RenderedExperiment:
    """The experiment as if it stood in this folder; `overrides` are `--set` texts."""
    loaded = load_text(text, folder / "experiment.yaml", (*overrides, ON_KUBERNETES))
    return render_experiment(loaded)


def objects_of(found: RenderedExperiment, kind: str) -> list[Manifest]:
    """In the order to apply."""
    return [each for each in found.rendered.objects if each["kind"] == kind]


def pods_of(found: RenderedExperiment) -> list[Manifest]:
    """Their specifications."""
    return [each["spec"]["template"]["spec"] for each in objects_of(found, "Job")]


def container_of(found: RenderedExperiment, number: int = -1) -> Manifest:
    """Of the pods of one job, the last if it is not said."""
    (container,) = pods_of(found)[number]["containers"]
    return dict(container)


def asked_by(container: Manifest) -> AskedNetwork | None:
    """The network that the entrypoint is told; None: none."""
    before = container["args"][: container["args"].index("--")]
    if "--network" not in before:
        return None
    return read_network_word(before[before.index("--network") + 1].replace("$$", "$"))


def variables_of(container: Manifest) -> dict[str, Any]:
    """By name; of a secret the reference."""
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


def examples_with_a_face() -> list[str]:
    """Those that say what a network of theirs is to pods."""
    files = sorted(examples_folder().glob("*.yaml"))
    return [file.stem for file in files if "kubernetes:" in file.read_text()]
