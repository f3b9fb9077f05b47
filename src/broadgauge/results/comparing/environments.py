"""What differs between the environments of two runs, and what is not known to be equal?"""

from collections.abc import Iterable, Iterator, Mapping

from broadgauge.specs.machines.alike_nodes import node_words
from broadgauge.specs.machines.cluster_words import (
    UNKNOWN,
    cluster_words,
    fact_title,
    known_or_unknown,
)
from broadgauge.specs.records.imported import IMPORTED
from broadgauge.specs.records.record import Environment

Environments = Mapping[str, Environment]
"""By their hashes."""
Cluster = Mapping[str, str | None]
"""Facts by name; None: unknown."""
NONE = "none"


def environment_differences(a: Environments, b: Environments) -> tuple[str, ...]:
    """Which facts differ? Each with all values seen in A and in B."""
    return (*_of_fields(a, b), *_of_clusters(a, b), *_of_variables(a, b))


def perhaps_different(a: Environments, b: Environments) -> tuple[str, ...]:
    """Which facts of their clusters are unknown in both runs? Two unknowns are not equal."""
    in_a, in_b = _clusters(a), _clusters(b)
    return tuple(
        fact_title(name)
        for name in _names((*in_a, *in_b))
        if UNKNOWN in _values(in_a, name) and UNKNOWN in _values(in_b, name)
    )


def _of_fields(a: Environments, b: Environments) -> Iterator[str]:
    for field in Environment.model_fields:
        if field not in ("variables", "cluster"):
            seen_a, seen_b = _fields_seen(a, field), _fields_seen(b, field)
            yield from _difference(field, seen_a, seen_b)


def _fields_seen(environments: Environments, field: str) -> list[str]:
    return sorted({_fact(environment, field) for environment in environments.values()})


def _fact(environment: Environment, field: str) -> str:
    value = getattr(environment, field)
    if value is None:
        return UNKNOWN
    if field == "gpus":
        return ", ".join(gpu.name for gpu in value) or NONE
    if field == "nodes":
        return "; ".join(map(node_words, value)) or "one machine"
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value) or NONE
    return str(value)


def _of_clusters(a: Environments, b: Environments) -> Iterator[str]:
    """Fact by fact, where both runs were in one."""
    in_a, in_b = _clusters(a), _clusters(b)
    if not in_a or not in_b:
        yield from _difference("cluster", _whole(a, in_a), _whole(b, in_b))
        return
    for name in _names((*in_a, *in_b)):
        yield from _difference(fact_title(name), _values(in_a, name), _values(in_b, name))


def _clusters(environments: Environments) -> list[Cluster]:
    """Of those environments that are of one."""
    return [each.cluster for each in environments.values() if each.cluster]


def _whole(environments: Environments, clusters: Iterable[Cluster]) -> list[str]:
    words = {cluster_words(cluster) for cluster in clusters}
    platforms = {each.platform for each in environments.values()}
    return sorted(words or {UNKNOWN if each == IMPORTED else NONE for each in platforms})


def _names(clusters: Iterable[Cluster]) -> list[str]:
    """Each once, in the order they are told in."""
    return list(dict.fromkeys(name for cluster in clusters for name in cluster))


def _values(clusters: Iterable[Cluster], name: str) -> list[str]:
    return sorted({known_or_unknown(cluster.get(name, NONE)) for cluster in clusters})


def _of_variables(a: Environments, b: Environments) -> Iterator[str]:
    names = sorted({name for env in (*a.values(), *b.values()) for name in env.variables})
    for name in names:
        in_a = sorted({env.variables.get(name, "not set") for env in a.values()})
        in_b = sorted({env.variables.get(name, "not set") for env in b.values()})
        yield from _difference(name, in_a, in_b)


def _difference(what: str, in_a: list[str], in_b: list[str]) -> Iterator[str]:
    """None where a run tells nothing."""
    if in_a and in_b and in_a != in_b:
        yield f"{what}: {' and '.join(in_a)} in A, {' and '.join(in_b)} in B"
