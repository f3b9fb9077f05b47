"""Proves engine/environment_changes.py: what parts the blocks of a run, and what does not."""

from tests.engine.making import a_machine, an_experiment, devices_of

from broadgauge.engine.environment_changes import EnvironmentChanges
from broadgauge.engine.plan import make_plan
from broadgauge.specs.records.record import Environment, NodeFacts

PLAN = make_plan(an_experiment(), devices_of(a_machine()))


def a_node(number: int, cores: int = 8, nics: tuple[str, ...] = ("eth0",)) -> NodeFacts:
    return NodeFacts(
        nodes=(number,),
        hostnames=(f"gpu{number}",),
        kernel="6.8",
        cores=cores,
        memory_bytes=2**34,
        nics=nics,
    )


def on(*nodes: NodeFacts) -> Environment:
    return Environment(
        broadgauge="1",
        platform="hosts",
        python="3.12",
        kernel="6.8",
        cores=8,
        memory_bytes=2**34,
        nodes=nodes,
    )


def test_cases_of_fewer_nodes_and_new_nics_part_no_block() -> None:
    changes = EnvironmentChanges(PLAN, (), {})
    both = a_node(0).model_copy(update={"nodes": (0, 1), "hostnames": ("gpu0", "gpu1")})
    for _ in range(2):
        assert changes.enter(on(a_node(0)), ["one node"]) == ()
        assert changes.enter(on(both), ["two nodes"]) == ()
    with_a_bridge = a_node(1, nics=("eth0", "docker0"))
    assert changes.enter(on(a_node(0), with_a_bridge), ["two nodes"]) == ()
    assert changes.block(0) == 0


def test_another_machine_of_the_same_case_begins_a_block() -> None:
    changes = EnvironmentChanges(PLAN, (), {})
    assert changes.enter(on(a_node(0), a_node(1)), ["two nodes"]) == ()
    (change,) = changes.enter(on(a_node(0), a_node(1, cores=4)), ["two nodes"])
    assert change.startswith("nodes: ")
    assert changes.block(0) > 0


def in_pods(**cluster: str | None) -> Environment:
    return on(a_node(0)).model_copy(update={"platform": "kubernetes", "cluster": cluster})


def test_a_fact_of_the_cluster_that_changes_begins_a_block() -> None:
    changes = EnvironmentChanges(PLAN, (), {})
    assert changes.enter(in_pods(kubernetes="v1.34.4", image="a@1"), ["one node"]) == ()
    told = changes.enter(in_pods(kubernetes="v1.34.4", image="a@2"), ["one node"])
    assert told == ("cluster image: a@1 → a@2",)
    assert changes.block(0) > 0


def test_what_could_not_be_read_of_a_cluster_is_no_change() -> None:
    changes = EnvironmentChanges(PLAN, (), {})
    known = in_pods(kubernetes="v1.34.4", kueue="v0.14.1")
    for other in (in_pods(kubernetes=None, kueue=None), in_pods(trainer=None), in_pods()):
        assert changes.enter(known, ["one node"]) == ()
        assert changes.enter(other, ["one node"]) == ()
    assert changes.block(0) == 0
