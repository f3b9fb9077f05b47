"""How is a cluster's inventory read? With whatever rights there are: what may not be read is said,
and nothing is changed."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TypeVar

from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import MALFORMED, ApiError, is_missing
from broadgauge.platforms.kubernetes.cluster_facts import (
    OPENSHIFT,
    OPENSHIFT_VERSION,
    served_groups,
)
from broadgauge.platforms.kubernetes.inventory.cluster_inventory import (
    NOT_ASKED,
    ClusterAnswers,
    Inventory,
    ListedNetworks,
    NotKnown,
    inventory_of,
)
from broadgauge.platforms.kubernetes.inventory.found_definitions import MULTUS_SHARED, shown
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, mappings
from broadgauge.platforms.kubernetes.operators import OPERATORS, operator_version
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.platforms.kubernetes.resources import ATTACHMENTS, NAMESPACES, NODES, Resource

T = TypeVar("T")
POLICIES = Resource(
    group="sriovnetwork.openshift.io",
    version="v1",
    kind="SriovNetworkNodePolicy",
    plural="sriovnetworknodepolicies",
)


def read_inventory(api: Api, namespace: str) -> Inventory:
    """Raises PlatformError where no server answers, or none that knows who asks."""
    try:
        return inventory_of(_answers(api, namespace))
    except ApiError as error:
        raise refusal(error, "reading what the cluster has") from error


def _answers(api: Api, namespace: str) -> ClusterAnswers:
    """The groups come first: to whoever may not read a kind it is forbidden where there is none,
    too."""
    groups = _read(partial(api.read, "/apis"), "read the API's groups", is_first=True)
    served = None if isinstance(groups, NotKnown) else served_groups(groups)

    def of_group(group: str, ask: Callable[[], T], doing: str) -> T | NotKnown:
        if served is not None and group not in served:
            return NotKnown(f"the cluster has no {group}")
        return _read(ask, doing)

    own = _read(partial(api.get, NAMESPACES, None, namespace), "read the namespace")
    return ClusterAnswers(
        version=_read(partial(api.read, "/version"), "read the version"),
        operators=groups if isinstance(groups, NotKnown) else _operators(api, served or ()),
        openshift=of_group(OPENSHIFT, partial(api.read, OPENSHIFT_VERSION), "read ClusterVersions"),
        namespace=own,
        namespaces=_others(api, own),
        nodes=_read(partial(api.list, NODES, None), "list nodes"),
        attachments=of_group(
            ATTACHMENTS.group, partial(_attachments, api, namespace), "list network definitions"
        ),
        policies=of_group(
            POLICIES.group, partial(api.list, POLICIES, None), "list SR-IOV policies"
        ),
    )


def _others(api: Api, own: JsonMap | NotKnown) -> JsonMap | NotKnown:
    """Namespaces beside one that is not there: one of them may be meant."""
    if not isinstance(own, NotKnown) or own.may_be_there:
        return NOT_ASKED
    return _read(partial(api.list, NAMESPACES, None), "list namespaces")


def _attachments(api: Api, namespace: str) -> ListedNetworks:
    """Of all namespaces, or where these may not be listed of those that pods may use. Raises
    ApiError."""
    try:
        return ListedNetworks(items=_items(api, None))
    except ApiError as error:
        if error.status != 403:
            raise
        refused = error
    items, hidden = list[JsonMap](), list[str]()
    spaces = dict.fromkeys((namespace, MULTUS_SHARED))
    for space in spaces:
        try:
            items += _items(api, space)
        except ApiError as error:
            if error.status != 403:
                raise
            hidden.append(space)
    if len(hidden) == len(spaces):
        raise refused
    whose = " and ".join((*hidden, "other namespaces"))
    return ListedNetworks(items=items, hidden=f"those of {whose} may not be listed")


def _items(api: Api, namespace: str | None) -> list[JsonMap]:
    return mappings(api.list(ATTACHMENTS, namespace).get("items"))


def _operators(api: Api, served: Collection[str | None]) -> Mapping[str, str | None]:
    """By name, of those whose kinds are served."""
    found: dict[str, str | None] = {}
    for name, operator in OPERATORS.items():
        if operator.group in served:
            version = _read(partial(operator_version, api, operator), "list deployments")
            found[name] = None if isinstance(version, NotKnown) else version
    return found


def _read(ask: Callable[[], T], doing: str, *, is_first: bool = False) -> T | NotKnown:
    """Raises ApiError where no server answers, or none that knows who asks; of the first question
    whatever is neither forbidden nor missing."""
    try:
        return ask()
    except ApiError as error:
        if error.status == 403:
            return NotKnown(f"you may not {doing}", may_be_there=True)
        if error.reason == MALFORMED and not is_first:
            return NotKnown(f"the answer is not understood ({error.message})", may_be_there=True)
        if is_missing(error):
            return NotKnown("the cluster has none")
        if is_first or error.status in (None, 401):
            raise
        why = f"the server does not {doing} ({error.status}: {shown(error.message)})"
        return NotKnown(why, may_be_there=True)
