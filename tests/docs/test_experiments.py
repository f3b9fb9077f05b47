"""Holds that what docs/experiments.md shows is read, and names what there is."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from tests.engine.making import a_machine, devices_of

from broadgauge.engine.plan import make_plan
from broadgauge.running.experiments import find_model, read_base
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machines.cluster import Cluster
from broadgauge.specs.networks.network import Network
from broadgauge.specs.storages.storage import EmulatedDisk, Storage
from broadgauge.specs.text.axes import MAX_ENTRIES
from broadgauge.specs.text.fields import models_in
from broadgauge.specs.text.reading import read_experiment

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "experiments.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
REST = {
    "name": "name: x\n",
    "workloads": "workloads: [{kind: train}, {kind: collectives}]\n",
    "cluster": "cluster: {shapes: [1x1, 2x1]}\n",
}
"""What a snippet that shows a part leaves out."""


def read(snippet: str) -> Experiment:
    given = YAML(typ="safe", pure=True).load(snippet)
    missing = () if "extends" in given else (part for key, part in REST.items() if key not in given)
    text = snippet + "".join(missing)
    return read_experiment(text, "experiments.md", read_base=read_base, find_model=find_model)


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 6


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_is_read_and_planned(snippet: str) -> None:
    machine = a_machine(gpus=8)
    experiment = read(snippet).model_copy(update={"best_effort": True})
    plan = make_plan(experiment, devices_of(machine))
    assert plan.cases
    assert not [note for note in plan.notes if " matches " in note]


def test_names_in_comments_are_the_names_there_are() -> None:
    for snippet in SNIPPETS:
        experiment = read(snippet)
        names = {entry.name for entry in (*experiment.networks, *experiment.workloads)}
        bases = re.findall(r"# ((?:eth|train|coll)-\S.*)", snippet)
        said = {word.strip() for line in bases for word in line.split(",")} - {"…"}
        assert said <= names


def test_every_key_is_named() -> None:
    """A key that the types have and the page does not would be found by nobody."""
    models = {Experiment, Cluster, Network, Storage, EmulatedDisk}
    models |= set(models_in(Experiment.model_fields["workloads"].annotation))
    words = set(re.findall(r"[a-z_]+", TEXT))
    missing = {
        f"{model.__name__}.{key}"
        for model in models
        for key in model.model_fields
        if key not in words
    }
    assert missing == set()


def test_the_bound_is_what_is_said() -> None:
    assert f"At most {MAX_ENTRIES} networks and {MAX_ENTRIES} workloads" in TEXT


def test_flags_in_the_text_can_be_set() -> None:
    flags = re.findall(r"--set\s+(\S+?=(?:'[^']*'|\S+?))[`\s]", TEXT)
    assert len(flags) >= 4
    base, name = read_base("quickstart", "x.yaml")
    overrides = [flag.replace("'", "") for flag in flags]
    assert read_experiment(base, name, overrides).launches == 3
