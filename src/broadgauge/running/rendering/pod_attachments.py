"""What are the pods of each case given for their networks? By `kubernetes.allocation` those of its
shape, or its own alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from broadgauge.agent.pod.address_map import AddressMapError, MappedNic, parse_map
from broadgauge.agent.pod.rdma_plugins import BY_PLUGIN
from broadgauge.manifests.attachment_conflicts import refuse_conflicts
from broadgauge.manifests.definitions import Definitions, Interface
from broadgauge.manifests.interfaces import Attachments, attach
from broadgauge.manifests.topology import check_topology
from broadgauge.manifests.user_files import shared_file
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.kubernetes.settings import Kubernetes
from broadgauge.specs.networks.network import Network
from broadgauge.specs.networks.pod_networks import SecondaryNetwork


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedNetworks:
    """Of all jobs of an experiment."""

    by_case: dict[str, Attachments]
    """By the case's key."""
    definitions: tuple[Interface, ...]
    """That are rendered, each once."""
    needs_locked_memory: dict[str, bool]
    """By the case's key: does its pods' RDMA pin memory?"""
    address_map: bytes | None
    topology: bytes | None


def attach_networks(
    settings: Kubernetes, cases: Sequence[Case], prefix: str, folder: Path
) -> AttachedNetworks:
    """Raises InputError where pods can't have what their networks ask for."""
    text, rows = _address_map(cases, folder)
    definitions = Definitions(prefix)
    by_case: dict[str, Attachments] = {}
    locks: dict[str, bool] = {}
    for case in cases:
        networks = _of_pods(settings, case, cases)
        found = attach(networks, definitions, rows)
        is_each_told = case.nodes == 1 or (settings.job == "pytorchjob" and case.nodes == 2)
        refuse_conflicts(found, case.nodes, rows, is_each_told=is_each_told)
        by_case[case.key] = found
        locks[case.key] = any(each.face is not None and each.face.is_rdma for each in networks)
    return AttachedNetworks(
        by_case=by_case,
        definitions=tuple(definitions.rendered.values()),
        needs_locked_memory=locks,
        address_map=text,
        topology=_topology(settings, cases, folder),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNetworks:
    """Of all pods of a run."""

    attachments: Attachments
    definitions: tuple[Interface, ...]
    needs_locked_memory: bool
    address_map: bytes | None
    topology: bytes | None


def attach_for_run(
    settings: Kubernetes, cases: Sequence[Case], prefix: str, folder: Path
) -> RunNetworks:
    """Every network of every case, each with the most NICs that a case has of it. Raises InputError
    where one pod can't have them all."""
    text, rows = _address_map(cases, folder)
    networks = _distinct(case.link for case in cases if case.link is not None)
    for case in cases:
        _refuse_fewer_adapters(case, networks)
    definitions = Definitions(prefix)
    found = attach(networks, definitions, rows)
    num_pods = max(case.nodes for case in cases)
    is_each_told = num_pods == 1 or (settings.job == "pytorchjob" and num_pods == 2)
    refuse_conflicts(found, num_pods, rows, is_each_told=is_each_told)
    is_mapped = any(each.is_mapped for each in found.interfaces)
    return RunNetworks(
        attachments=found,
        definitions=tuple(definitions.rendered.values()),
        needs_locked_memory=any(
            each.kubernetes is not None and each.kubernetes.is_rdma for each in networks
        ),
        address_map=text if is_mapped else None,
        topology=_topology(settings, cases, folder),
    )


def _refuse_fewer_adapters(case: Case, networks: Sequence[Network]) -> None:
    """NCCL's plugins take all adapters of a pod. Raises InputError."""
    link = case.link
    if link is None or link.kubernetes is None or link.kubernetes.attachment != "device-plugin":
        return
    most = max(each.num_nics for each in networks if each.name == link.name)
    if link.kubernetes.transport in BY_PLUGIN and link.num_nics < most:
        raise InputError(
            f"networks.{link.name}.nics_per_node: {link.num_nics} of {case.nodes} nodes, and the "
            f"run's pods have {most}, of which NCCL's plugin takes all",
            hint="one number of NICs for all shapes, or a run for each shape",
        )


def _address_map(cases: Sequence[Case], folder: Path) -> tuple[bytes | None, tuple[MappedNic, ...]]:
    """The file and its lines; None: no network names one. Raises InputError."""
    named = _named_map(_distinct(case.link for case in cases if case.link is not None))
    text = None if named is None else shared_file(folder, named.path, named.key)
    return text, () if named is None or text is None else _rows(named, text)


def _of_pods(settings: Kubernetes, case: Case, cases: Sequence[Case]) -> tuple[Network, ...]:
    if case.link is None:
        return ()
    if settings.allocation == "per_case":
        return (case.link,)
    return _distinct(
        each.link for each in cases if each.shape == case.shape and each.link is not None
    )


def _distinct(networks: Iterable[Network]) -> tuple[Network, ...]:
    """Each once, in the order of the plan."""
    found: dict[str, Network] = {}
    for each in networks:
        known = found.setdefault(each.name, each)
        found[each.name] = known if known.num_nics >= each.num_nics else each
    return tuple(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamedMap:
    path: str
    """As the experiment has it."""
    network: str

    @property
    def key(self) -> str:
        return f"networks.{self.network}.kubernetes.ipam.map"


def _named_map(networks: Iterable[Network]) -> _NamedMap | None:
    """The one that networks name, `./m.txt` and `m.txt` alike. Raises InputError for a second."""
    named: dict[PurePosixPath, _NamedMap] = {}
    for each in networks:
        face = each.kubernetes
        if isinstance(face, SecondaryNetwork) and face.ipam is not None and face.ipam.map:
            path = face.ipam.map
            named.setdefault(PurePosixPath(path), _NamedMap(path=path, network=each.name))
    maps = tuple(named.values())
    if len(maps) > 1:
        raise InputError(
            f"{maps[1].key}: {maps[1].path}, and {maps[0].network} has {maps[0].path}: pods have "
            "one address map",
            hint="one file with the lines of both",
        )
    return maps[0] if maps else None


def _rows(named: _NamedMap, text: bytes) -> tuple[MappedNic, ...]:
    """Raises InputError with the user's own file."""
    try:
        return parse_map(text.decode(), named.path)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{named.key}: {named.path} is no UTF-8 text: {error.reason}, byte {error.start}",
            hint="save it as UTF-8",
        ) from error
    except AddressMapError as error:
        raise InputError(error.message, hint=error.hint) from error


def _topology(settings: Kubernetes, cases: Sequence[Case], folder: Path) -> bytes | None:
    """Raises InputError for a file that NCCL would not read, or that lacks GPUs of a pod."""
    path = settings.topology_file
    if path is None:
        return None
    content = shared_file(folder, path, "kubernetes.topology_file")
    most_gpus = max(case.ranks_per_node for case in cases)
    check_topology(content, path, num_gpus=most_gpus)
    return content
