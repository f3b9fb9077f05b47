"""Proves specs/text/extending.py: what wins, what merges, and whose file is blamed."""

import pytest

from broadgauge.specs.errors import ExperimentError, InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.text.extending import BaseReader
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.text.writing import dump_experiment

BASE = """\
name: base
description: the base's
cluster: {shapes: [1x1, 2x1], device: cpu}
networks:
  - {name: slow, rate_gbps: 1, environment: {A: "1", B: "1"}}
  - {name: fast, rate_gbps: 10}
workloads:
  - kind: train
    steps: 8
    model: {layers: 2, hidden: 64}
  - {kind: collectives, sizes: [1 KiB, 2 KiB]}
launches: 3
limits: {measure_s: 100, warm_up_s: 50}
"""
CHILD = """\
extends: base
name: child
cluster: {shapes: [2x1]}
networks:
  - {name: new}
  - {name: fast, mtu_bytes: 9000}
  - {name: slow, environment: {B: "2"}}
workloads:
  - kind: collectives
    sizes: [1 MiB]
  - kind: train
    model: {hidden: 128}
limits: {measure_s: 5 s}
"""


def among(**files: str) -> BaseReader:
    """A reader of made-up files."""

    class Among:
        def __call__(self, reference: str, from_file: str) -> tuple[str, str]:
            if reference not in files:
                raise InputError(f"{reference}: no such file", hint="did you mean `base`?")
            return files[reference], f"{reference}.yaml"

        def identity(self, filename: str) -> str:
            return filename

    return Among()


def read(text: str = CHILD, *flags: str, **files: str) -> Experiment:
    return read_experiment(text, "child.yaml", flags, read_base=among(**{"base": BASE, **files}))


def test_mappings_merge_and_lists_and_values_are_replaced() -> None:
    experiment = read()
    assert experiment.name == "child"
    assert experiment.description == "the base's"
    assert experiment.launches == 3
    assert experiment.cluster.shapes == ("2x1",)
    assert experiment.cluster.device == "cpu"
    assert (experiment.limits.measure_s, experiment.limits.warm_up_s) == (5, 50)


def test_entries_merge_by_name_in_the_bases_order_and_new_ones_come_last() -> None:
    experiment = read()
    assert [network.name for network in experiment.networks] == ["slow", "fast", "new"]
    slow, fast, _ = experiment.networks
    assert (slow.rate_gbps, slow.environment) == (1, {"A": "1", "B": "2"})
    assert (fast.rate_gbps, fast.mtu_bytes) == (10, 9000)
    train, collectives = experiment.workloads
    assert train.kind == "train"
    assert (train.steps, train.model.layers, train.model.hidden) == (8, 2, 128)
    assert collectives.kind == "collectives"
    assert collectives.sizes == (2**20,)


def test_hypotheses_merge_by_name_too() -> None:
    hypothesis = "hypotheses: [{name: h, statement: s, cases: {nodes: 2}, at_most: %s%s}]\n"
    base = BASE + hypothesis % (2, ", quantity: value")
    experiment = read(CHILD + hypothesis % (1, ""), base=base)
    assert [(h.at_most, h.quantity) for h in experiment.hypotheses] == [(1, "value")]


def test_a_workload_of_another_kind_replaces_the_one_of_its_name() -> None:
    text = CHILD + ""
    text = text.replace("kind: train\n    model", "kind: collectives\n    name: train\n    check")
    text = text.replace("check: {hidden: 128}", "check: false")
    experiment = read(text)
    assert [(w.name, w.kind) for w in experiment.workloads] == [
        ("train", "collectives"),
        ("collectives", "collectives"),
    ]


def test_a_chain_ends_with_the_file_that_is_run() -> None:
    middle = "extends: base\nlaunches: 4\ntrials_per_launch: 2\n"
    experiment = read("extends: middle\nlaunches: 5\n", middle=middle)
    assert (experiment.name, experiment.launches, experiment.trials_per_launch) == ("base", 5, 2)


def test_flags_come_last_and_axes_after_them() -> None:
    flags = ("networks.slow.rate_gbps=[2, 3]", "workloads.train.steps=5")
    experiment = read(CHILD, *flags)
    assert [n.name for n in experiment.networks[:2]] == ["slow-rate-2", "slow-rate-3"]
    assert all(n.environment == {"A": "1", "B": "2"} for n in experiment.networks[:2])
    assert experiment.workloads[0].steps == 5


def test_what_is_stored_is_resolved() -> None:
    text = dump_experiment(read())
    assert "extends" not in text
    assert read_experiment(text, "stored.yaml") == read()


@pytest.mark.parametrize(
    ("base", "child", "where", "said"),
    [
        (("rate_gbps: 10", "rate_gbps: 10 GB"), ("", ""), "base.yaml:6:18", "no unit of a rate"),
        (("", ""), ("9000", "90"), "child.yaml:6:18", "not `90`"),
        (("layers: 2", "layers: 0"), ("", ""), "base.yaml:10:13", "not `0`"),
        (("launches: 3", "lanches: 3"), ("", ""), "base.yaml:12:1", "did you mean `launches`?"),
        (("", ""), ("hidden: 128", "hidden: 130, heads: 4"), "child.yaml:12:5", "does not divide"),
        (("name: fast", "name: fast, rate_gbps: 1"), ("", ""), "base.yaml:6:32", "stands twice"),
        ((BASE, "[1]"), ("", ""), "base.yaml:1:1", "an experiment is a mapping"),
        ((BASE, ""), ("", ""), "base.yaml", "the file is empty"),
        ((BASE, "extends: base"), ("", ""), "base.yaml:1:1", "in a circle: base.yaml → base.yaml"),
        ((BASE, "extends: b2"), ("", ""), "base.yaml:1:1", "b2: no such file"),
        (
            ("", ""),
            ("extends: base", "extends: bsae"),
            "child.yaml:1:1",
            "bsae: no such file",
        ),
        (("", ""), ("extends: base", "extends: bsae"), "child.yaml:1:1", "did you mean `base`?"),
        (("", ""), ("extends: base", "extends: [base]"), "child.yaml:1:1", "the path of one file"),
        (("", ""), ("extends: base", "extends:"), "child.yaml:1:1", "the path of one file"),
        (("", ""), ("{name: new}", "{name: fast}"), "child.yaml:6:6", "two networks are named"),
    ],
)
def test_the_file_that_says_it_is_blamed(
    base: tuple[str, str], child: tuple[str, str], where: str, said: str
) -> None:
    assert base[0] in BASE
    assert child[0] in CHILD
    with pytest.raises(ExperimentError) as caught:
        read(CHILD.replace(*child, 1), base=BASE.replace(*base, 1))
    text = str(caught.value)
    assert text.startswith(where), text
    assert said in text


def test_a_long_chain_is_refused() -> None:
    files = {f"f{i}": f"extends: f{i + 1}\n" for i in range(40)}
    with pytest.raises(ExperimentError, match="more than 16 files"):
        read("extends: f0", **files)


def test_a_flag_does_not_extend() -> None:
    with pytest.raises(ExperimentError, match="--set extends=base: `extends` stands in the file"):
        read(BASE, "extends=base")


def test_a_text_alone_extends_nothing() -> None:
    with pytest.raises(ExperimentError, match=r"e\.yaml:1:1: `extends`: is not resolved here"):
        read_experiment(CHILD, "e.yaml")
