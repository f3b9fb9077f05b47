"""What does a network that the user names ask of a job that is written already?"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from broadgauge.catalog.profiled import fabric_of, with_profile
from broadgauge.manifests.attachments import networks_annotation
from broadgauge.manifests.definitions import Definitions
from broadgauge.manifests.fabric_parts import pod_resources
from broadgauge.manifests.interfaces import attach
from broadgauge.manifests.job_parts import is_gpu
from broadgauge.manifests.patch_needs import needs_of
from broadgauge.manifests.patching import AddedNetwork
from broadgauge.running.experiments import load
from broadgauge.running.rendering.pod_environment import network_variables
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.networks.pod_networks import POD_INTERFACE, PodNetwork, SecondaryNetwork
from broadgauge.specs.secrets.names import url_secrets
from broadgauge.specs.secrets.token_forms import holds_token

POD_NETWORK = "pod"
"""Known without an experiment: the network that every pod has."""
_MOST_NAMED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedNetwork:
    """Which network a job is put on."""

    name: str
    """`pod`, a NetworkAttachmentDefinition, or a network of the experiment."""
    experiment: str | None = None
    """Whose network of this name is meant."""
    resource: str | None = None
    """By which the pods get the RDMA devices of a definition."""


def added_network(wanted: WantedNetwork) -> AddedNetwork:
    """What of a job is changed. Raises InputError and ExperimentError."""
    if wanted.experiment is None:
        return _by_itself(wanted)
    if wanted.resource is not None:
        raise InputError(
            f"--resource {wanted.resource}: the experiment's network says its own",
            hint="`kubernetes.resources` of the network, or no --experiment",
        )
    experiment = load(wanted.experiment, ()).experiment
    networks = [each for each in experiment.networks if isinstance(each, Network)]
    named = next((each for each in networks if each.name == wanted.name), None)
    if named is None:
        raise _unknown(wanted, [each.name for each in networks])
    if named.kubernetes is None:
        raise InputError(
            f"networks.{wanted.name}: it does not say what is attached to pods",
            hint="`kubernetes: pod` is the cluster's own network",
        )
    if named.nics_per_node == "nodes":
        raise InputError(
            f"networks.{wanted.name}.nics_per_node: `nodes`, and a patch does not know how many",
            hint="a network with a number of NICs",
        )
    complete = with_profile(named.as_found_on("kubernetes")).on_nodes(1)
    return _attached(
        complete, _own(complete), is_memlock_raised=experiment.kubernetes.memlock_is_raised
    )


def _unknown(wanted: WantedNetwork, known: Sequence[str]) -> InputError:
    """A name in the file may have become several, by axes."""
    message = f"--network: {wanted.experiment} has no network `{wanted.name}`"
    expanded = [name for name in known if name.startswith(f"{wanted.name}-")]
    if not expanded:
        return InputError(message, hint=did_you_mean(wanted.name, known))
    shown = ", ".join(f"`{name}`" for name in expanded[:_MOST_NAMED])
    more = len(expanded) - _MOST_NAMED
    return InputError(
        f"{message}, but {shown}{f' and {more} more' if more > 0 else ''}",
        hint="one of these: a network whose keys take lists is one for each of their values",
    )


def _by_itself(wanted: WantedNetwork) -> AddedNetwork:
    """The pod network, or a definition that is in the cluster. Raises InputError."""
    if wanted.name == POD_NETWORK:
        if wanted.resource is not None:
            raise InputError(
                f"--resource {wanted.resource}: the pod network asks for none",
                hint="--network: the name of a NetworkAttachmentDefinition",
            )
        return AddedNetwork(
            variables=network_variables(PodNetwork(attachment="pod"), (POD_INTERFACE,))
        )
    face = {"attachment": "existing", "definitions": wanted.name, "transport": "tcp"}
    if wanted.resource is not None:
        _refuse_gpus("--resource", [wanted.resource])
        face |= {"resources": wanted.resource, "transport": "roce"}
    try:
        network = Network.model_validate({"name": "named", "kubernetes": face})
    except ValidationError as error:
        why = error.errors()[0]
        raise InputError(
            f"--network {wanted.name}: {why['msg'].removeprefix('Value error, ')}",
            hint="`pod`, the name of a NetworkAttachmentDefinition (`space/name` of one in another "
            "namespace), or --experiment FILE and the name of one of its networks",
        ) from error
    return _attached(network.on_nodes(1), {}, is_memlock_raised=False)


def _refuse_gpus(place: str, resources: Sequence[str]) -> None:
    """Raises InputError."""
    for name in filter(is_gpu, resources):
        raise InputError(
            f"{place}: `{name}` are GPUs, and GPUs are no NIC",
            hint="the name under which the nodes offer their RDMA devices: `kubectl describe node` "
            "lists it below Allocatable, such as `rdma/rdma_shared_device_eth`",
        )


def _attached(network: Network, own: dict[str, str], *, is_memlock_raised: bool) -> AddedNetwork:
    """Raises InputError where an overlay can't have it."""
    face = network.kubernetes
    assert face is not None, network.name
    if isinstance(face, SecondaryNetwork):
        _check_profile(network)
        _check_face(f"networks.{network.name}.kubernetes", face)
    found = attach((network,), Definitions(network.name), ())
    numbers = {name: str(number) for name, number in found.resources.items()}
    return AddedNetwork(
        variables=network_variables(face, found.names_of[network.name]) | own,
        annotations=networks_annotation(found.interfaces, None, 0),
        resources=numbers | pod_resources(found.fabrics),
        transport=face.transport,
        is_memlock_raised=is_memlock_raised,
        needs=tuple(needs_of(found)),
    )


def _check_profile(network: Network) -> None:
    """Raises InputError for a fabric with more than resources and variables."""
    fabric = fabric_of(network)
    if fabric is None:
        return
    parts = ["a container beside the ranks'"] * (fabric.daemon is not None)
    parts += ["folders of the node in theirs"] * bool(fabric.host_paths)
    if parts:
        raise InputError(
            f"networks.{network.name}.kubernetes.profile: {fabric.name} needs "
            f"{' and '.join(parts)}, which an overlay does not add",
            hint="`broadgauge render` writes the whole job",
        )


def _check_face(place: str, face: SecondaryNetwork) -> None:
    """What can't be helped first. Raises InputError."""
    _refuse_gpus(f"{place}.resources", face.resources)
    kind = None if face.ipam is None else face.ipam.kind
    if kind == "static":
        raise InputError(
            f"{place}.ipam: `static`, and an overlay gives all pods one address",
            hint="`broadgauge render` writes the whole job, and numbers its pods",
        )
    if kind == "address-map":
        raise InputError(
            f"{place}.ipam: `address-map`, and an overlay does not add the init container that "
            "sets each pod's addresses",
            hint="`broadgauge render` writes the whole job, with it",
        )
    if face.attachment != "device-plugin" and not face.definitions:
        raise InputError(
            f"{place}.definitions: an overlay names definitions that are in the cluster, and these "
            "have no names",
            hint="`definitions: …`, as `broadgauge render` or an administrator made them",
        )


def _own(network: Network) -> dict[str, str]:
    """What its entry sets for ranks. Raises InputError for a secret."""
    own: dict[str, str] = {}
    for key, value in network.environment.items():
        if not isinstance(value, str) or holds_token(value) or url_secrets(value):
            raise InputError(
                f"networks.{network.name}.environment.{key} is a secret, and an overlay would "
                "show it",
                hint="`valueFrom: {secretKeyRef: …}` in the manifest itself",
            )
        own[key] = value
    return own
