"""What do pods find beside their image: the program, its orders, the user's files, the addresses?

Nothing of it is secret. Source of the limit: Kubernetes, "ConfigMaps": 1 MiB of data in each.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Mapping

from broadgauge.manifests import labels
from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.errors import InputError
from broadgauge.wording.amounts import show_size

MAX_BYTES = 1024 * 1024
FILES_MAX_BYTES = 900_000
ORDERS_MAX_BYTES = MAX_BYTES - 64 * 1024
"""Beside them must be room for what a leader is asked meanwhile, some hundred bytes each."""
MAP_KEY = "nodename_ip_mapping.yaml"
PROGRAM_KEY = "broadgauge.zip"
FIRST_ORDERS_KEY = "order-00000.json.gz"
_FEWER_ORDERS = (
    "fewer `launches`, or fewer cases (networks, shapes, workloads); with `allocation: per_case` "
    "each case has a job and orders of its own"
)
_KEY = re.compile(r"[-._A-Za-z0-9]{1,253}")


def metadata(request: JobRequest, name: str) -> Manifest:
    """Of an object of the run."""
    of_namespace = {} if (space := request.settings.namespace) is None else {"namespace": space}
    own = labels.labels_of(request.run, request.name, request.settings.labels)
    owner = {labels.OWNER: request.owner or labels.APPLIED_BY_HAND}
    return {"name": name, **of_namespace, "labels": own, "annotations": owner}


def config_map(
    request: JobRequest,
    name: str,
    data: Mapping[str, bytes],
    what: str,
    *,
    most_bytes: int = MAX_BYTES,
    hint: str = "an image or a volume that has them (`kubernetes.working_folder`)",
) -> Manifest:
    """One of them; text stands as text. Raises InputError where it is too large."""
    total_bytes = sum(map(len, data.values()))
    if total_bytes > most_bytes:
        largest = max(data, key=lambda key: len(data[key]))
        raise InputError(
            f"{what} ({show_size(total_bytes)}) are more than a ConfigMap holds, "
            f"{show_size(most_bytes)}: the largest is `{largest}`",
            hint=hint,
        )
    texts = {key: text for key, value in data.items() if (text := _text(value)) is not None}
    rest = {key: b64encode(value).decode() for key, value in data.items() if key not in texts}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(request, name),
        **({"data": texts} if texts else {}),
        **({"binaryData": rest} if rest else {}),
    }


def _text(value: bytes) -> str | None:
    """None: it is no text that a ConfigMap's `data` gives back byte by byte."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def program_file(request: JobRequest) -> ManifestFile:
    """The zip file that pods run."""
    name = labels.program_name(request.name)
    data = {PROGRAM_KEY: request.program}
    version = hashlib.sha256(request.program).hexdigest()[:16]
    return ManifestFile(
        path="10-program.yaml",
        comment=f"What runs in the pods, one zip file of Python (version {version}): agent, "
        "leader, probes.\nMade by Broadgauge from its own sources.",
        objects=(config_map(request, name, data, "Broadgauge's own program"),),
    )


def orders_file(request: JobRequest) -> ManifestFile:
    """What the leader is to run."""
    name = labels.orders_name(request.name)
    data = {FIRST_ORDERS_KEY: request.orders}
    return ManifestFile(
        path="20-orders.yaml",
        comment="What the first pod's leader runs: every launch of the plan, in order "
        "(JSON, gzip).\nMade from the experiment's workloads, networks, launches and seed.",
        objects=(
            config_map(
                request,
                name,
                data,
                "the orders of this plan",
                most_bytes=ORDERS_MAX_BYTES,
                hint=_FEWER_ORDERS,
            ),
        ),
    )


def file_keys(files: Mapping[str, bytes]) -> dict[str, str]:
    """Of each path the ConfigMap's key: its own where each can have one, else numbers for all."""
    flat = {path: path.replace("/", "__") for path in files}
    is_clear = len(set(flat.values())) == len(flat)
    if is_clear and all(_KEY.fullmatch(key) and ".." not in key for key in flat.values()):
        return flat
    return {path: f"file-{number:03}" for number, path in enumerate(flat)}


def files_file(request: JobRequest) -> ManifestFile | None:
    """The user's own; None: there are none. Raises InputError where they are too large."""
    if not request.files:
        return None
    total_bytes = sum(map(len, request.files.values()))
    if total_bytes > FILES_MAX_BYTES:
        largest = max(request.files, key=lambda path: len(request.files[path]))
        raise InputError(
            f"kubernetes.files: {show_size(total_bytes)} in all, and "
            f"{show_size(FILES_MAX_BYTES)} are sent in a ConfigMap: the largest is `{largest}`",
            hint="an image or a volume that has them, and `kubernetes.working_folder`",
        )
    keys = file_keys(request.files)
    data = {keys[path]: content for path, content in request.files.items()}
    name = labels.files_name(request.name)
    return ManifestFile(
        path="30-files.yaml",
        comment="Your scripts and files, which each pod copies to where its commands run.\n"
        "From the experiment's commands and its `kubernetes.files`.",
        objects=(config_map(request, name, data, "your files"),),
    )


def addresses_file(request: JobRequest) -> ManifestFile | None:
    """The address map; None: no network has one."""
    if request.address_map is None:
        return None
    name = labels.addresses_name(request.name)
    data = {MAP_KEY: request.address_map.encode()}
    return ManifestFile(
        path="30-addresses.yaml",
        comment="Which address the fabric gave to each NIC of each node: "
        "`host:device:interface:ip`.\nFrom `networks[].kubernetes.ipam.map`; the pods' init "
        "container sets them.",
        objects=(config_map(request, name, data, "the address map"),),
    )
