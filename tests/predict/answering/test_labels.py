"""Are two cases that differ told apart, in a table and in a sentence about a cluster?"""

from broadgauge.predict.answering.labels import tell_apart, told_beside_place
from broadgauge.predict.asking.workload_case import fabric_of, training_case
from broadgauge.predict.case import TrainingCase
from broadgauge.specs.networks.network import Network
from broadgauge.specs.workloads.workload import TrainWorkload


def asked(name: str, network: str = "slow", **keys: object) -> TrainingCase:
    workload = TrainWorkload.model_validate({"kind": "train", "name": name} | keys)
    fabric = fabric_of(Network(name=network, rate_gbps=1))
    return training_case(workload, gpu="h200", nodes=2, ranks_per_node=1, fabric=fabric)


def told(*cases: TrainingCase) -> list[tuple[str, ...]]:
    _, labels = tell_apart(cases, range(len(cases)))
    return told_beside_place(cases, labels)


def test_workloads_of_one_model_and_strategy_are_told_apart_by_name() -> None:
    full, lora = asked("full"), asked("lora", lora={"rank": 8})
    assert told(full, lora) == [("full",), ("lora",)]


def test_a_name_is_left_out_where_model_strategy_or_network_say_as_much() -> None:
    assert told(asked("a"), asked("b", strategy="fsdp")) == [(), ()]
    assert told(asked("a"), asked("b", network="fast")) == [(), ()]
    assert told(asked("a"), asked("a", network="fast")) == [(), ()]
