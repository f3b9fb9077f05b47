"""Is a rate that nobody stated told from one that was, wherever it is shown?"""

from typing import Any

import pytest
from tests.engine.making import a_machine, an_experiment, devices_of
from tests.specs.text.test_extending import among

from broadgauge.catalog.catalog import load_catalog
from broadgauge.engine.plan import make_plan
from broadgauge.predict.asking.experiment_cases import Replacements, experiment_cases
from broadgauge.report.lines.opening import plan_lines
from broadgauge.running.ladder import as_ladder
from broadgauge.running.reference import with_reference
from broadgauge.specs.case import Case
from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.text.writing import dump_experiment

POD: dict[str, Any] = {
    "name": "pod",
    "rate_gbps": 11,
    "overlay": "vxlan",
    "rate_inferred_from": "a throughput of 0.16 of one node, with 24 samples a rank",
}
TRAIN: dict[str, Any] = {"kind": "train", "name": "t"}
BASE = """\
name: base
cluster: {shapes: [2x1]}
networks:
  - {name: pod, rate_gbps: 11, rate_inferred_from: a throughput}
workloads: [{kind: train}]
"""


def only_network(text: str, *flags: str) -> Network:
    (network,) = read_experiment(text, "e.yaml", flags, read_base=among(base=BASE)).networks
    assert isinstance(network, Network)
    return network


def test_the_label_says_so_beside_the_rate() -> None:
    network = Network.model_validate(POD)
    assert network.label == "pod, 11 Gbit/s (inferred), TCP in VXLAN, no added delay"
    both = Network.model_validate({**POD, "receive_rate_gbps": 5})
    assert both.label.startswith("pod, 11 Gbit/s out, 5 Gbit/s in (inferred), TCP")
    assert "inferred" not in Network(name="pod", rate_gbps=11).label


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("rate_inferred_from: x", "`rate_inferred_from` needs `rate_gbps` beside it"),
        ("rate_gbps: 1, rate_inferred_from: ''", "rate_inferred_from"),
    ],
)
def test_it_is_said_of_a_rate_and_says_something(entry: str, said: str) -> None:
    with pytest.raises(ExperimentError, match=said) as caught:
        only_network(BASE.replace("rate_gbps: 11, rate_inferred_from: a throughput", entry))
    assert "e.yaml:4:" in str(caught.value)


def test_it_is_of_the_emulated_face() -> None:
    network = Network.model_validate({**POD, "kubernetes": "pod", "found": {"interface": "eth0"}})
    assert network.as_emulated() == Network.model_validate(POD)
    assert network.as_found_on("kubernetes").rate_inferred_from is None
    assert network.as_found_on("hosts").rate_inferred_from is None


def test_it_is_words_and_no_other_case() -> None:
    def case(**changes: object) -> Case:
        values: dict[str, object] = {"workload": TRAIN, "network": {**POD, **changes}}
        values |= {"nodes": 2, "ranks_per_node": 1, "device": "cpu", "backend": "gloo"}
        return Case.model_validate({**values, "environment": {}})

    assert case(rate_inferred_from=None).key == case().key != case(rate_gbps=12).key


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("extends: base\nnetworks: [{name: pod, rate_gbps: 2}]\n", ()),
        (BASE, ("networks.pod.rate_gbps=2",)),
        ("extends: base\n", ("networks.0.rate_gbps=2",)),
    ],
)
def test_another_rate_is_not_inferred(text: str, flags: tuple[str, ...]) -> None:
    network = only_network(text, *flags)
    assert (network.rate_gbps, network.rate_inferred_from) == (2, None)


@pytest.mark.parametrize(
    ("text", "flags", "words"),
    [
        ("extends: base\n", (), "a throughput"),
        ("extends: base\nnetworks: [{name: pod, mtu_bytes: 9000}]\n", (), "a throughput"),
        (BASE, ("networks.pod.mtu_bytes=9000",), "a throughput"),
        (BASE, ("networks.pod.rate_gbps=2", "networks.pod.rate_inferred_from=mine"), "mine"),
        ("extends: base\nnetworks: [{name: pod, rate_gbps: 2, rate_inferred_from: b}]\n", (), "b"),
    ],
)
def test_the_same_rate_stays_so_and_another_may_be(
    text: str, flags: tuple[str, ...], words: str
) -> None:
    network = only_network(text, *flags)
    assert network.rate_inferred_from == words


def test_other_rates_on_the_same_network_are_stated() -> None:
    experiment = read_experiment(
        BASE.replace("kind: train", "kind: command, command: [t.py], metrics: "
                     "[{name: step_time_s, json_key: s}]"),
        "e.yaml",
    )  # fmt: skip
    for changed in (with_reference(experiment), as_ladder(experiment, (1.0, 2.0, 4.0))):
        others = [each for each in changed.networks if each.name != "pod"]
        assert others
        assert all(each.rate_inferred_from is None for each in others if isinstance(each, Network))
        assert read_experiment(dump_experiment(changed), "e.yaml") == changed


def test_the_whole_text_is_said_once_by_the_plan() -> None:
    """Whose notes are on the first screen, below the tables, on the page and in its JSON."""
    experiment = an_experiment(
        networks=[
            {**POD, "name": "one"},
            {**POD, "name": "two", "mtu_bytes": 9000},
            {"name": "stated", "rate_gbps": 25},
        ],
        workloads=[TRAIN],
        cluster={"shapes": ["1x1", "2x1"]},
    )
    plan = make_plan(experiment, devices_of(a_machine()))
    note = f"rate of one, two is inferred: {POD['rate_inferred_from']}"
    assert plan.notes.count(note) == 1
    lines = list(plan_lines(experiment, plan))
    assert f"note       {note}" in lines
    assert sum("(inferred)" in line for line in lines) == 2


def test_predictions_say_so_too() -> None:
    experiment = an_experiment(networks=[POD], workloads=[TRAIN], cluster={"shapes": ["2x1"]})
    asked = experiment_cases(experiment, ["h100-sxm"], Replacements(), load_catalog())
    assert "inferred rates, as the file says: pod" in asked.assumed
    instead = Replacements(networks=["roce-400g"])
    other = experiment_cases(experiment, ["h100-sxm"], instead, load_catalog())
    assert not [words for words in other.assumed if "inferred" in words]
