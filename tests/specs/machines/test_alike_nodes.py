"""Proves specs/machines/alike_nodes.py: what is equal of several machines is stored once."""

from broadgauge.specs.machines.alike_nodes import alike_nodes, node_words
from broadgauge.specs.records.record import GpuFacts, NodeFacts


def a_node(number: int, **changes: object) -> NodeFacts:
    facts = {
        "nodes": (number,),
        "hostnames": (f"gpu{number}",),
        "kernel": "6.8.0",
        "cores": 192,
        "memory_bytes": 2**41,
        "gpus": (GpuFacts(name="NVIDIA H200", memory_bytes=141 * 10**9),) * 8,
        "nics": ("eth0 25 Gbit/s ena",),
        "torch": "2.11.0",
    }
    return NodeFacts(**facts | changes)


def test_machines_that_differ_in_name_only_are_one_entry() -> None:
    nodes = [a_node(0), a_node(1, kernel="6.14.0"), a_node(2), a_node(3)]
    first, other = alike_nodes(nodes)
    assert (first.nodes, first.hostnames) == ((0, 2, 3), ("gpu0", "gpu2", "gpu3"))
    assert (other.nodes, other.kernel) == ((1,), "6.14.0")
    assert alike_nodes([first, other]) == (first, other)


def test_machines_are_shown_in_a_line() -> None:
    [both] = alike_nodes([a_node(0), a_node(1)])
    assert node_words(both) == (
        "nodes 0 and 1 (gpu0, gpu1): 8 x NVIDIA H200, 192 cores, 2 TiB, Linux 6.8.0, "
        "torch 2.11.0, eth0 25 Gbit/s ena"
    )
