"""How do the storages of a launch come up, in the order in which they need each other?

Stores with their servers first, then what nodes mount of them. Everything runs in PID 1 of the
cluster; it ends with it, but for what host_part.py removes.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.emulated.addresses import PREFIX_LENGTH, storage_address, store_address
from broadgauge.agent.emulated.cabling import HINT_VETH, add_switch
from broadgauge.agent.emulated.errors import EmulationError, building
from broadgauge.agent.emulated.namespaces import HINT_NAMESPACES
from broadgauge.agent.emulated.nodes import EmulatedCluster, Node, returning_to
from broadgauge.agent.emulated.shaping import LinkPlan, unshaped
from broadgauge.agent.emulated.storage.host_part import HostPart
from broadgauge.agent.emulated.storage.mounts import (
    MountPlan,
    mount_bucket,
    mount_disk,
    mount_memory,
    mount_shared,
)
from broadgauge.agent.emulated.storage.store import (
    EmulatedStore,
    build_store,
    join_to_stores,
    start_file_server,
    start_s3_server,
)
from broadgauge.agent.emulated.syscalls import CloneFlag, setns
from broadgauge.messages.emulated_storage import OBJECT_KINDS, StoragePlan, store_host


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """Where the programs of a launch's storages write what they say."""

    folder: Path
    launch_id: str

    def path(self, name: str) -> Path:
        return self.folder / f"{self.launch_id}.storage.{name}.log"


def stores_of(plans: Sequence[StoragePlan]) -> dict[str, list[StoragePlan]]:
    """Which storages need which store? In the order given; disks and memory need none."""
    stores: dict[str, list[StoragePlan]] = {}
    for plan in plans:
        if plan.kind in (*OBJECT_KINDS, "shared"):
            stores.setdefault(plan.store, []).append(plan)
    for name, users in stores.items():
        if len({(plan.rate_gbps, plan.request_latency_s) for plan in users}) > 1:
            raise EmulationError(
                f"emulate the store {name}",
                "its storages name different rate_gbps or request_latency_s",
                error_number=None,
                hint="they share one link and one server: give them the same",
            )
    return stores


def hosts_of(plans: Sequence[StoragePlan]) -> dict[str, str]:
    """What nodes must have in /etc/hosts."""
    return {store_host(name): store_address(n) for n, name in enumerate(stores_of(plans))}


def new_keys() -> dict[str, str]:
    """Of this launch's stores, as ranks find them in their environment. They rest in no file.

    No proxy of the user's leads to a node; a token of the user's is for another server.
    """
    return {
        "AWS_ACCESS_KEY_ID": f"BG{secrets.token_hex(9).upper()}",
        "AWS_SECRET_ACCESS_KEY": secrets.token_hex(20),
        "AWS_SESSION_TOKEN": "",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "*",
        "no_proxy": "*",
    }


def build_storages(
    cluster: EmulatedCluster,
    plans: Sequence[StoragePlan],
    host: HostPart,
    logs: Logs,
    keys: dict[str, str],
) -> tuple[str, ...]:
    """Make them all; what the user should know of them. Raises EmulationError."""
    stores = _build_stores(cluster, plans)
    for store in stores.values():
        _start_servers(store, stores_of(plans)[store.name], host, logs, keys)
    for node in cluster.nodes:
        number = cluster.nodes.index(node)
        for plan in plans:
            log = logs.path(f"{plan.name}.node{number}")
            disk = host.scratch / f"node{number}"
            mount_plan = MountPlan(storage=plan, node=node, disk=disk, log=log)
            _mount(mount_plan, cluster.shm_bytes_per_node, _shared_folder(host, plan.store), keys)
    return _notes(plans)


def _build_stores(
    cluster: EmulatedCluster, plans: Sequence[StoragePlan]
) -> dict[str, EmulatedStore]:
    wanted = stores_of(plans)
    if not wanted:
        return {}
    netlink = cluster.nodes[0].nics[0].ingress.netlink
    switch = add_switch(netlink, "storage")
    stores = {
        name: build_store(netlink, switch, name=name, number=number, rate_gbps=users[0].rate_gbps)
        for number, (name, users) in enumerate(wanted.items())
    }
    slowest = min(
        (store.link for store in stores.values()), key=lambda link: link.rate_gbps or float("inf")
    )
    for number, node in enumerate(cluster.nodes):
        _join_node(node, number, switch, slowest)
    return stores


def _join_node(node: Node, number: int, switch: int, slowest: LinkPlan) -> None:
    """A NIC of its own to the stores, not shaped; segments stay as short as a store's link asks."""
    from pyroute2 import IPRoute

    netlink = node.nics[0].ingress.netlink
    with building(f"enter {node.hostname}", HINT_NAMESPACES), returning_to(node.home):
        setns(node.namespaces.net, CloneFlag.NEWNET)
        inside = IPRoute()
    index = join_to_stores(
        netlink,
        inside,
        switch,
        port=f"n{number}storage",
        net_fd=node.namespaces.net,
        link=unshaped(slowest),
    )
    with building(f"give {node.hostname} its storage address", HINT_VETH):
        inside.addr("add", index=index, address=storage_address(number), prefixlen=PREFIX_LENGTH)


def _start_servers(
    store: EmulatedStore,
    users: Sequence[StoragePlan],
    host: HostPart,
    logs: Logs,
    keys: dict[str, str],
) -> None:
    log = logs.path(store.name)
    if any(plan.kind in OBJECT_KINDS for plan in users):
        folder = host.scratch / "stores" / store.name / "objects"
        start_s3_server(store, folder, log, keys=keys, latency_s=users[0].request_latency_s)
    if any(plan.kind == "shared" for plan in users):
        start_file_server(store, _shared_folder(host, store.name), log)


def _mount(plan: MountPlan, memory_bytes: int, shared: Path, keys: dict[str, str]) -> None:
    match plan.storage.kind:
        case "disk":
            mount_disk(plan)
        case "memory":
            mount_memory(plan, memory_bytes)
        case "s3-mount" | "s3-cached":
            mount_bucket(plan, keys)
        case "shared":
            mount_shared(plan, shared)
        case "s3":
            pass


def _shared_folder(host: HostPart, store: str) -> Path:
    return host.scratch / "stores" / store / "files"


def _notes(plans: Sequence[StoragePlan]) -> tuple[str, ...]:
    notes = []
    if any(plan.kind == "shared" for plan in plans):
        notes.append("an emulated `shared` storage is SSHFS without encryption, not NFS or Lustre")
    if any(plan.kind == "s3-mount" for plan in plans):
        notes.append("an emulated `s3-mount` is rclone without a cache, where SkyPilot has goofys")
    return tuple(notes)
