"""How are the facts of a cluster put into words? What could not be read is `unknown`."""

from collections.abc import Iterator, Mapping

UNKNOWN = "unknown"


def known_or_unknown(value: str | None) -> str:
    return UNKNOWN if value is None else value


def fact_title(name: str) -> str:
    """`cluster zones`."""
    return f"cluster {name}"


def cluster_words(cluster: Mapping[str, str | None]) -> str:
    """In a line: `kubernetes v1.34.4; zones unknown`."""
    return "; ".join(f"{name} {known_or_unknown(value)}" for name, value in cluster.items())


def cluster_rows(cluster: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """One a fact: its title and its value."""
    return ((fact_title(name), known_or_unknown(value)) for name, value in cluster.items())
