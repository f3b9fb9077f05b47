"""Which objects are the job of a run? One for all of its cases: their pods are alike, with every
network attached, so that launches of all cases come one after another in the same pods.

What a launch does is in the leader's orders, and nothing of it in a pod. Source of the limit:
Kubernetes, "ConfigMaps": 1 MiB of data in each.
"""

import gzip
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from broadgauge.manifests import names
from broadgauge.manifests.asked_network import asked_network
from broadgauge.manifests.attachments import address_map_file, definitions_file, topology_file
from broadgauge.manifests.claims import claims_file
from broadgauge.manifests.config_maps import config_map, files_map, program_map
from broadgauge.manifests.definitions import Interface
from broadgauge.manifests.job_objects import job_objects
from broadgauge.manifests.nothing_secret import HINT
from broadgauge.manifests.pod_template import pod_template
from broadgauge.manifests.prepare import prepare_file
from broadgauge.manifests.run_container import TOKEN_KEY, LedPods, run_contents
from broadgauge.manifests.user_files import MOST_BYTES
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.messages.asked_network import AskedNetwork
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.kubernetes.settings import JobKind
from broadgauge.specs.secrets.token_forms import holds_token
from broadgauge.specs.secrets.values import SecretText, SecretTexts
from broadgauge.wording.amounts import show_size

MOST_ORDERS_BYTES = MOST_BYTES - (64 << 10)
"""Beside them must be room for what a leader is told meanwhile, some hundred bytes each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob(LedPods):
    """The pods of all cases of a run, as many as the largest shape has nodes: launches of fewer
    nodes use the first."""

    run: str
    """The label of all that is deleted with it."""
    cases: tuple[Case, ...]
    definitions: tuple[Interface, ...]
    """Of the networks that are attached, those that are written for this job."""


class MakeRunJob(Protocol):
    """From where the experiment is known to where the cluster is."""

    def __call__(self, *, kind: JobKind, namespace: str | None, run: str, name: str) -> RunJob:
        """Of this kind and name, for the run of this label. Raises InputError where the cases can't
        share pods, a file is missing, or a secret would be shown."""
        ...


def run_objects(run: RunJob, orders: Mapping[str, bytes]) -> tuple[Manifest, ...]:
    """All but the Secret, which must be there before; in the order to create, the job the last.
    `orders`: by `order_key`, compressed. Raises InputError where they don't fit."""
    return (*lasting_objects(run), *own_objects(run, orders))


def lasting_objects(run: RunJob) -> tuple[Manifest, ...]:
    """What outlives the run, and may be there: definitions that the experiment names by itself,
    which another run may use, claims, and the Job that fills one. They bear no label of the run."""
    named = [each for each in run.definitions if not _is_of_run(run, each)]
    unmarked = replace(run, marks={}, shared_marks={})
    files = (definitions_file(unmarked, named), claims_file(run), prepare_file(run))
    return tuple(each for file in files if file is not None for each in file.objects)


def own_objects(run: RunJob, orders: Mapping[str, bytes]) -> tuple[Manifest, ...]:
    """What is deleted with the run, all with its labels. Raises InputError."""
    _refuse_large("the program that its pods run", len(run.program), MOST_BYTES, None)
    shared = (
        definitions_file(run, [each for each in run.definitions if _is_of_run(run, each)]),
        address_map_file(run, run.address_map),
        topology_file(run, run.topology),
    )
    return (
        *(each for file in shared if file is not None for each in file.objects),
        program_map(run),
        orders_map(run, orders),
        *([files_map(run)] if run.files else []),
        *job_objects(run, lambda first_pod: run_contents(run, first_pod)),
    )


def bare_pod(run: RunJob) -> Manifest:
    """The first pod of the job, as its operator makes it but for its own additions."""
    made = pod_template(run, lambda first_pod: run_contents(run, first_pod))
    space = {} if run.settings.namespace is None else {"namespace": run.settings.namespace}
    about = {"name": f"{run.name}-rehearsed", **space, **made["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": made["spec"]}


def _is_of_run(run: RunJob, definition: Interface) -> bool:
    """Has it its name from us?"""
    return definition.definition.startswith(run.name)


def order_key(number: int) -> str:
    """Of the leader's orders, from 0."""
    return f"order-{number:04}.json.gz"


def orders_map(run: RunJob, orders: Mapping[str, bytes]) -> Manifest:
    """What its leader is told, by `order_key`. Raises InputError where it is too large, or holds
    what has the form of a token: everybody who sees the job may read it."""
    for data in orders.values():
        if holds_token(gzip.decompress(data).decode(errors="replace")):
            raise InputError(
                "what the launches are told holds a token or a private key by its form, and a "
                "ConfigMap would show it",
                hint=HINT,
            )
    _refuse_large(
        "what all launches are told, compressed,",
        sum(map(len, orders.values())),
        MOST_ORDERS_BYTES,
        "fewer `launches`, or fewer cases: networks, shapes, workloads",
    )
    return config_map(names.metadata(run, names.orders_name(run), names.job_labels(run)), orders)


def _refuse_large(what: str, size_bytes: int, most_bytes: int, hint: str | None) -> None:
    """Raises InputError."""
    if size_bytes > most_bytes:
        raise InputError(
            f"{what} takes {show_size(size_bytes)}, and a ConfigMap has room for "
            f"{show_size(most_bytes)}",
            hint=hint,
        )


def run_secret(run: RunJob, token: SecretText, values: SecretTexts) -> Manifest:
    """The token of its leader and agents, and the values of `looked_up`. It goes to the API server,
    and into no file."""
    assert values.keys() == set(run.looked_up), sorted(values.keys() ^ set(run.looked_up))
    texts = {TOKEN_KEY: token, **values}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": names.metadata(run, names.secrets_name(run), names.job_labels(run)),
        "type": "Opaque",
        "data": {key: b64encode(text.reveal().encode()).decode() for key, text in texts.items()},
    }


def asked_network_of(run: RunJob, case: Case) -> AskedNetwork | None:
    """What agents look for in a launch of this case, among all that is attached to their pods;
    None: one node, whose ranks need none."""
    return asked_network(run, case)


def cores_of(run: RunJob, case: Case) -> int:
    """That the ranks of this case have in each pod: as many as it asks for, else one a rank."""
    return case.ranks_per_node if run.cpus is None else max(1, int(run.cpus))
