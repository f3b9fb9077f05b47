"""Is an unshaped network added for commands, and for nothing else?"""

import pytest

from broadgauge.running.reference import with_reference
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.workloads.workload import Workload

TEXT = """\
name: own
cluster: {shapes: [2x1], device: cpu}
networks:
  - {name: slow, rate_gbps: 0.2, loss_ratio: 0.01, mtu_bytes: 9000}
  - {name: fast, rate_gbps: 1, mtu_bytes: 9000, slow_pairs: [{nodes: [0, 1], rate_ratio: 0.4}]}
workloads:
  - {kind: command, name: mine, command: [t.py], metrics: [{name: step_time_s, json_key: s}]}
  - {kind: train}
"""


def networks_of(workloads: tuple[Workload, ...]) -> list[tuple[str, ...] | None]:
    return [workload.networks for workload in workloads]


def test_commands_run_on_it_too_and_others_where_they_did() -> None:
    experiment = with_reference(read_experiment(TEXT, "e.yaml"))
    reference = experiment.networks[-1]
    assert isinstance(reference, Network)
    assert (reference.name, reference.node_rate_gbps) == ("reference", None)
    assert (reference.mtu_bytes, reference.loss_ratio, reference.slow_pairs) == (9000, 0, ())
    assert networks_of(experiment.workloads) == [None, ("slow", "fast")]
    chosen = read_experiment(TEXT, "e.yaml", ("workloads.mine.networks=[slow]",))
    assert networks_of(with_reference(chosen).workloads)[0] == ("slow", "reference")


def test_an_experiment_that_has_one_stays_as_it_is() -> None:
    fast = TEXT.replace(", slow_pairs: [{nodes: [0, 1], rate_ratio: 0.4}]", "")
    experiment = read_experiment(fast.replace("rate_gbps: 1, ", ""), "e.yaml")
    assert with_reference(experiment) is experiment


def test_a_name_that_is_taken_is_not_taken_again() -> None:
    experiment = with_reference(read_experiment(TEXT.replace("slow,", "reference,"), "e.yaml"))
    assert experiment.networks[-1].name == "unshaped"


def test_without_a_command_there_is_nothing_to_refer_to() -> None:
    text = "\n".join(line for line in TEXT.splitlines() if "command" not in line)
    with pytest.raises(InputError, match="--add-reference is for commands"):
        with_reference(read_experiment(text, "e.yaml"))
