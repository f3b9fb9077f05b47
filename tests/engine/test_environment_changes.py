"""Proves engine/environment_changes.py: what parts the blocks of a run, and what does not."""

from tests.engine.making import a_machine, an_experiment, devices_of

from broadgauge.engine.environment_changes import EnvironmentChanges
from broadgauge.engine.plan import make_plan
from broadgauge.specs.record import Environment, NodeFacts

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


def test_a_new_version_of_the_cluster_begins_a_block_and_a_right_that_was_lost_none() -> None:
    """What could be read before and not now, or the other way round, is no change."""
    changes = EnvironmentChanges(PLAN, (), {})

    def within(**cluster: str | None) -> Environment:
        return on(a_node(0)).model_copy(update={"cluster": cluster})

    assert changes.enter(within(kubernetes="v1.34.4", openshift="4.17"), ["one node"]) == ()
    assert changes.enter(within(kubernetes="v1.34.4", openshift=None), ["one node"]) == ()
    assert changes.enter(within(kubernetes="v1.34.4", zones="a x 2"), ["one node"]) == ()
    assert changes.block(0) == 0
    (change,) = changes.enter(within(kubernetes="v1.35.0"), ["one node"])
    assert change.startswith("cluster: ")
    assert changes.block(0) > 0
