"""How is a store built: a node of its own, its server, and a shaped link to all others?

Everything runs in PID 1 of the cluster, in one thread.
"""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broadgauge.agent.emulated.addresses import PREFIX_LENGTH, STORAGE_DEVICE, store_address
from broadgauge.agent.emulated.cabling import HINT_VETH
from broadgauge.agent.emulated.errors import building
from broadgauge.agent.emulated.links import ShapedInterface
from broadgauge.agent.emulated.namespaces import HINT_NAMESPACES
from broadgauge.agent.emulated.node_files import MIN_SHM_BYTES, furnish_node
from broadgauge.agent.emulated.nodes import Namespaces, returning_to
from broadgauge.agent.emulated.shaping import LinkPlan, receiving_plan, sending_plan
from broadgauge.agent.emulated.storage.daemons import (
    StorageProcess,
    await_ready,
    start_function,
    start_program,
)
from broadgauge.agent.emulated.storage.latency_proxy import LatencyProxy
from broadgauge.agent.emulated.storage.tools import BUILD_FIX, find_program, find_sftp_server
from broadgauge.agent.emulated.syscalls import CloneFlag, sethostname, setns, unshare
from broadgauge.agent.emulated.sysctls import NODE_SETTINGS, apply_settings
from broadgauge.messages.emulated_storage import BUCKET, STORE_PORT, store_host

MTU_BYTES = 1500
"""Of storage links: what most networks to an object store have."""
SFTP_PORT = 9002
_SERVER_PORT = 9001
"""Of a server that something waits in front of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedStore:
    """A node that others store on."""

    name: str
    number: int
    link: LinkPlan
    namespaces: Namespaces
    home: Namespaces
    inside: Any
    """The netlink socket of its network namespace."""

    @property
    def address(self) -> str:
        return store_address(self.number)

    def enter(self) -> None:
        """Move this process in, before it becomes a server."""
        with building(f"enter {store_host(self.name)}", HINT_NAMESPACES):
            self.namespaces.enter()

    def listens(self, port: int) -> bool:
        """Does its server answer? Asked within its namespace, so that no link is used."""
        setns(self.namespaces.net, CloneFlag.NEWNET)
        try:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return True
        finally:
            setns(self.home.net, CloneFlag.NEWNET)
        return False


def build_store(
    netlink: Any, switch: int, *, name: str, number: int, rate_gbps: float | None
) -> EmulatedStore:
    """Its namespaces, and its link to the switch with this rate in each direction."""
    home = Namespaces.of_this_process()
    with (
        building(f"make the namespaces of {store_host(name)}", HINT_NAMESPACES),
        returning_to(home),
    ):
        from pyroute2 import IPRoute

        unshare(CloneFlag.NEWNET | CloneFlag.NEWUTS | CloneFlag.NEWNS)
        sethostname(store_host(name))
        furnish_node({store_host(name): store_address(number)}, MIN_SHM_BYTES)
        apply_settings(NODE_SETTINGS)
        namespaces, inside = Namespaces.of_this_process(), IPRoute()
    with building(f"bring up lo of {store_host(name)}", HINT_VETH):
        inside.link("set", index=1, state="up")
    link = LinkPlan(rate_gbps=rate_gbps, mtu=MTU_BYTES)
    port = f"store{number}"
    join_to_stores(netlink, inside, switch, port=port, net_fd=namespaces.net, link=link)
    with building(f"give {store_host(name)} its address", HINT_VETH):
        index = inside.link_lookup(ifname=STORAGE_DEVICE)[0]
        inside.addr("add", index=index, address=store_address(number), prefixlen=PREFIX_LENGTH)
    return EmulatedStore(
        name=name, number=number, link=link, namespaces=namespaces, home=home, inside=inside
    )


def join_to_stores(
    netlink: Any, inside: Any, switch: int, *, port: str, net_fd: int, link: LinkPlan
) -> int:
    """A veth pair between the storage switch and a namespace; gives the index inside."""
    with building(f"make the veth pair {port}", HINT_VETH):
        peer = {"ifname": STORAGE_DEVICE, "net_ns_fd": net_fd}
        netlink.link("add", ifname=port, kind="veth", peer=peer)
        port_index: int = netlink.link_lookup(ifname=port)[0]
        device_index: int = inside.link_lookup(ifname=STORAGE_DEVICE)[0]
    ShapedInterface(netlink=inside, index=device_index).apply(sending_plan(link, {}, 1))
    ShapedInterface(netlink=netlink, index=port_index).apply(receiving_plan(link))
    with building(f"bring up {port}", HINT_VETH):
        netlink.link("set", index=port_index, master=switch, state="up")
        inside.link("set", index=device_index, state="up")
    return device_index


def start_s3_server(
    store: EmulatedStore, folder: Path, log: Path, *, keys: Mapping[str, str], latency_s: float
) -> StorageProcess:
    """The server and what waits in front of it; ready when this returns. Raises EmulationError."""
    program = find_program("versitygw")
    assert program is not None, "missing_for was asked"
    (folder / BUCKET).mkdir(parents=True)
    port = _SERVER_PORT if latency_s else STORE_PORT
    variables = {
        "ROOT_ACCESS_KEY": keys["AWS_ACCESS_KEY_ID"],
        "ROOT_SECRET_KEY": keys["AWS_SECRET_ACCESS_KEY"],
    }
    argv = [program, "--port", f":{port}", "--quiet", "posix", str(folder)]
    what = f"the S3 server of {store.name}"
    server = start_program(argv, what=what, enter=store.enter, variables=variables, log=log)
    await_ready(server, lambda: store.listens(port), hint=BUILD_FIX)
    if latency_s:
        _start_proxy(store, latency_s, log)
    return server


def _start_proxy(store: EmulatedStore, latency_s: float, log: Path) -> None:
    def serve() -> None:
        proxy = LatencyProxy(upstream=("127.0.0.1", _SERVER_PORT), latency_s=latency_s)
        proxy.serve(socket.create_server(("0.0.0.0", STORE_PORT), backlog=1024))

    what = f"the proxy of {store.name}"
    daemon = start_function(serve, what=what, enter=store.enter, log=log)
    await_ready(daemon, lambda: store.listens(STORE_PORT), hint="the log names what failed")


def start_file_server(store: EmulatedStore, folder: Path, log: Path) -> StorageProcess:
    """SFTP on plain TCP: each connection has an sftp-server of its own."""
    program = find_sftp_server()
    assert program is not None, "missing_for was asked"
    folder.mkdir(parents=True)

    def serve() -> None:
        _serve_programs(socket.create_server(("0.0.0.0", SFTP_PORT)), [program])

    what = f"the file server of {store.name}"
    daemon = start_function(serve, what=what, enter=store.enter, log=log)
    await_ready(daemon, lambda: store.listens(SFTP_PORT), hint="the log names what failed")
    return daemon


def _serve_programs(listener: socket.socket, argv: list[str]) -> None:
    """As inetd does: the connection is what the program reads and writes."""
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            os.dup2(connection.fileno(), 0)
            os.dup2(connection.fileno(), 1)
            os.execv(argv[0], argv)
        connection.close()
