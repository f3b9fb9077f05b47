"""Which machines of a cluster are alike? What is equal of several is stored once."""

from collections.abc import Iterable

from broadgauge.specs.records.record import Environment, NodeFacts
from broadgauge.specs.units import show_size


def alike_nodes(each: Iterable[NodeFacts]) -> tuple[NodeFacts, ...]:
    """The same facts with the numbers and names of equal machines together, in their order."""
    groups: dict[str, NodeFacts] = {}
    for facts in each:
        bare = facts.model_copy(update={"nodes": (), "hostnames": ()}).model_dump_json()
        known = groups.get(bare)
        groups[bare] = (
            facts
            if known is None
            else known.model_copy(
                update={
                    "nodes": (*known.nodes, *facts.nodes),
                    "hostnames": (*known.hostnames, *facts.hostnames),
                }
            )
        )
    return tuple(groups.values())


def node_words(facts: NodeFacts) -> str:
    """In a line: `nodes 0 and 1 (gpu1, gpu2): 8 x NVIDIA H200, 192 cores, 2.2 TB, Linux 6.8`."""
    numbers = " and ".join(map(str, facts.nodes))
    names = dict.fromkeys(gpu.name for gpu in facts.gpus)
    gpus = [f"{sum(gpu.name == name for gpu in facts.gpus)} x {name}" for name in names]
    parts = [
        *gpus,
        *([] if facts.cpu is None else [facts.cpu]),
        f"{facts.cores} cores",
        show_size(facts.memory_bytes),
        f"Linux {facts.kernel}",
        *(f"{what} {version}" for what, version in _versions(facts) if version is not None),
        *facts.nics,
    ]
    noun = "node" if len(facts.nodes) == 1 else "nodes"
    return f"{noun} {numbers} ({', '.join(facts.hostnames)}): {', '.join(parts)}"


def _versions(facts: NodeFacts) -> tuple[tuple[str, str | None], ...]:
    return (
        ("Python", facts.python),
        ("torch", facts.torch),
        ("NCCL", facts.nccl),
        ("driver", facts.driver),
    )


def nodes_words(environment: Environment) -> str | None:
    """Its machines, in a line. None: they are other machines, of which nothing is known."""
    if not environment.nodes and environment.platform in ("emulated", "local"):
        return "this machine"
    return "; ".join(map(node_words, environment.nodes)) or None
