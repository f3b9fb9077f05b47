"""What is a cluster, as far as its API says? Pure: from what was read, or why it could not be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from broadgauge.platforms.kubernetes.cluster_facts import openshift_version
from broadgauge.platforms.kubernetes.inventory.cluster_nodes import (
    ClusterNode,
    node_of,
    with_own_addresses,
)
from broadgauge.platforms.kubernetes.inventory.found_definitions import (
    FoundDefinition,
    SriovPool,
    definition_of,
    pool_of,
)
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, mapping, mappings, text
from broadgauge.specs.kubernetes.names import LabelName, is_name

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NotKnown:
    """Could not be read, and why: it may not be, or nothing of that kind is there."""

    why: str
    may_be_there: bool = False
    """It is forbidden, or the answer is not understood."""


NOT_ASKED = NotKnown("not asked for")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedNetworks:
    """NetworkAttachmentDefinitions, as they came."""

    items: list[JsonMap]
    hidden: str | None = None
    """Which may not be listed; None: all are here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAnswers:
    """What was read, as it came."""

    version: JsonMap | NotKnown
    operators: Mapping[str, str | None] | NotKnown
    """Version by name, of those that are there; None: unknown."""
    openshift: JsonMap | NotKnown
    namespace: JsonMap | NotKnown
    namespaces: JsonMap | NotKnown = NOT_ASKED
    """Asked for where the one that is meant is not there."""
    nodes: JsonMap | NotKnown
    attachments: ListedNetworks | NotKnown
    policies: JsonMap | NotKnown


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All of it."""

    version: str | NotKnown
    operators: Mapping[str, str | None] | NotKnown
    openshift: str | NotKnown
    has_namespace: bool
    """It is there, or may be."""
    namespaces: tuple[str, ...]
    """Where it is not there; empty: they are not known."""
    nodes: tuple[ClusterNode, ...] | NotKnown
    definitions: tuple[FoundDefinition, ...] | NotKnown
    hidden_definitions: str | None
    """Which there may be beside them."""
    pools: tuple[SriovPool, ...] | NotKnown

    @property
    def known_nodes(self) -> tuple[ClusterNode, ...]:
        """Empty where none can be known, too."""
        return () if isinstance(self.nodes, NotKnown) else self.nodes

    @property
    def known_definitions(self) -> tuple[FoundDefinition, ...]:
        """Empty where none can be known, too."""
        return () if isinstance(self.definitions, NotKnown) else self.definitions

    @property
    def known_pools(self) -> tuple[SriovPool, ...]:
        """Empty where none can be known, too."""
        return () if isinstance(self.pools, NotKnown) else self.pools

    @property
    def may_be_openshift(self) -> bool:
        """Is it, as far as can be known?"""
        return not isinstance(self.openshift, NotKnown) or self.openshift.may_be_there


def inventory_of(answers: ClusterAnswers) -> Inventory:
    """From the API's answers as they came."""
    space, networks = answers.namespace, answers.attachments
    nodes = _listed(answers.nodes, node_of)
    return Inventory(
        version=_told(answers.version, lambda told: text(told.get("gitVersion"))),
        operators=answers.operators,
        openshift=_told(answers.openshift, openshift_version),
        has_namespace=not isinstance(space, NotKnown) or space.may_be_there,
        namespaces=_names(answers.namespaces),
        nodes=nodes if isinstance(nodes, NotKnown) else with_own_addresses(nodes),
        definitions=_definitions(networks),
        hidden_definitions=None if isinstance(networks, NotKnown) else networks.hidden,
        pools=_listed(answers.policies, pool_of),
    )


def _definitions(networks: ListedNetworks | NotKnown) -> tuple[FoundDefinition, ...] | NotKnown:
    return networks if isinstance(networks, NotKnown) else tuple(map(definition_of, networks.items))


def _names(answer: JsonMap | NotKnown) -> tuple[str, ...]:
    found = _listed(answer, lambda each: mapping(each.get("metadata")).get("name"))
    if isinstance(found, NotKnown):
        return ()
    return tuple(name for name in found if is_name(name, LabelName))


def _told(answer: JsonMap | NotKnown, read: Callable[[JsonMap], str | None]) -> str | NotKnown:
    if isinstance(answer, NotKnown):
        return answer
    return read(answer) or NotKnown("the answer names no version", may_be_there=True)


def _listed(
    answer: JsonMap | NotKnown, parse: Callable[[JsonMap], T | None]
) -> tuple[T, ...] | NotKnown:
    """Without those that are none."""
    if isinstance(answer, NotKnown):
        return answer
    parsed = map(parse, mappings(answer.get("items")))
    return tuple(each for each in parsed if each is not None)
