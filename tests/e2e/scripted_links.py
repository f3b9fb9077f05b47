"""How does a rank without torch send bytes that are known? To rank 0 and back, over each NIC.

Rank 0 tells where it listens at MASTER_ADDR, as a store would be asked; the addresses are those of
GLOO_SOCKET_IFNAME, in its order.
"""

import json
import os
import socket
import time

from broadgauge.agent.addresses import address_of

_CHUNK_BYTES = 65_536


class Links:
    """A rank's connections: one a NIC to rank 0, or at rank 0 to each other rank."""

    def __init__(self, rank: int, world_size: int) -> None:
        names = os.environ["GLOO_SOCKET_IFNAME"].split(",")
        self.addresses = [address for name in names if (address := address_of(name))]
        self.is_first = rank == 0
        master = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        self.peers = self._serve(master, world_size) if self.is_first else [self._join(master)]

    def _serve(self, master: tuple[str, int], world_size: int) -> list[list[socket.socket]]:
        peers = []
        servers = [socket.create_server((address, 0)) for address in self.addresses]
        with socket.create_server(master) as store:
            for _ in range(world_size - 1):
                with store.accept()[0] as asking:
                    asking.sendall(json.dumps([each.getsockname() for each in servers]).encode())
                peers.append([server.accept()[0] for server in servers])
        for server in servers:
            server.close()
        return peers

    def _join(self, master: tuple[str, int]) -> list[socket.socket]:
        with connected(master) as store:
            told = b"".join(iter(lambda: store.recv(_CHUNK_BYTES), b""))
        there = [(address, port) for address, port in json.loads(told)]
        ends = zip(self.addresses, there, strict=True)
        return [socket.create_connection(end, source_address=(own, 0)) for own, end in ends]

    def exchange(self, size_bytes: int) -> None:
        """As many bytes to rank 0 over each NIC, and then back."""
        for links in self.peers:
            for link in links:
                turns = (receive, send) if self.is_first else (send, receive)
                for turn in turns:
                    turn(link, size_bytes)

    def close(self) -> None:
        for links in self.peers:
            for link in links:
                link.close()


def connected(there: tuple[str, int]) -> socket.socket:
    """Once it listens."""
    while True:
        try:
            return socket.create_connection(there)
        except ConnectionRefusedError:
            time.sleep(0.01)


def send(link: socket.socket, size_bytes: int) -> None:
    link.sendall(bytes(size_bytes))


def receive(link: socket.socket, size_bytes: int) -> None:
    left = size_bytes
    while left:
        left -= len(link.recv(min(left, _CHUNK_BYTES)))
