"""How is a cluster's inventory read? With whatever rights there are, in at most eight requests."""

from collections.abc import Callable

from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import MALFORMED, ApiError, is_missing
from broadgauge.platforms.kubernetes.inventory import (
    Answers,
    Inventory,
    NotKnown,
    group_names,
    inventory_of,
)
from broadgauge.platforms.kubernetes.json_shapes import JsonMap
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.platforms.kubernetes.resources import ATTACHMENTS, NODES, Resource

DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments")
POLICIES = Resource(
    group="sriovnetwork.openshift.io",
    version="v1",
    kind="SriovNetworkNodePolicy",
    plural="sriovnetworknodepolicies",
)
_OPENSHIFT = "/apis/config.openshift.io/v1/clusterversions/version"


def read_inventory(api: Api, namespace: str) -> Inventory:
    """Raises PlatformError where no server answers, or knows who asks."""
    try:
        return inventory_of(_answers(api, namespace))
    except ApiError as error:
        raise refusal(error, "reading what the cluster is") from error


def _answers(api: Api, namespace: str) -> Answers:
    groups = _read(lambda: api.read("/apis"), "read the API's groups", is_first=True)

    def of_group(name: str, ask: Callable[[], JsonMap], doing: str) -> JsonMap | NotKnown:
        """A group that is not there is forbidden too, to who may not read it."""
        if not isinstance(groups, NotKnown) and name not in group_names(groups):
            return NotKnown(f"the cluster has no {name}")
        return _read(ask, doing)

    networks = (ATTACHMENTS.group, "list network definitions of all namespaces")
    attachments = of_group(networks[0], lambda: api.list(ATTACHMENTS, None), networks[1])
    if isinstance(attachments, NotKnown):  # those of the namespace may be readable
        own = of_group(networks[0], lambda: api.list(ATTACHMENTS, namespace), networks[1])
        attachments = attachments if isinstance(own, NotKnown) else own
    return {
        "version": _read(lambda: api.read("/version"), "read the version"),
        "groups": groups,
        "nodes": _read(lambda: api.list(NODES, None), "list nodes"),
        "attachments": attachments,
        "deployments": _read(lambda: api.list(DEPLOYMENTS, None), "list all deployments"),
        "openshift": of_group(
            "config.openshift.io", lambda: api.read(_OPENSHIFT), "read the ClusterVersion"
        ),
        "policies": of_group(
            POLICIES.group, lambda: api.list(POLICIES, None), "list SR-IOV policies"
        ),
    }


def _read(ask: Callable[[], JsonMap], doing: str, *, is_first: bool = False) -> JsonMap | NotKnown:
    """Raises ApiError where it is neither forbidden nor missing, or the first is no answer."""
    try:
        return ask()
    except ApiError as error:
        if error.status == 403:
            return NotKnown(f"you may not {doing}", may_be_there=True)
        if error.reason == MALFORMED and not is_first:
            return NotKnown(f"the answer is not understood ({error.message})", may_be_there=True)
        if is_missing(error):
            return NotKnown("the cluster has none")
        raise
