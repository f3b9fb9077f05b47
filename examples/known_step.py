"""A step whose truth is known: it computes for so long, and exchanges so many bytes.

Two nodes, one rank each. Compute is a sleep, so that a busy machine changes it little; the bytes go
from rank 0 to rank 1 over one TCP connection, after the compute, or while it computes (--overlap
yes), and one byte comes back. One way, so that acknowledgements of the other share no link.
"""

import argparse
import json
import os
import socket
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=16)
parser.add_argument("--compute-ms", type=float, default=30.0)
parser.add_argument("--bytes", type=int, default=1_000_000)
parser.add_argument("--overlap", choices=("no", "yes", "both"), default="no")
options = parser.parse_args()
if os.environ["WORLD_SIZE"] != "2":
    raise SystemExit("known_step.py takes two ranks, on two nodes: shapes: [2x1]")


def connected() -> socket.socket:
    """Rank 0 listens on the port beside torchrun's own."""
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + 1)
    if os.environ["RANK"] == "0":
        with socket.create_server(address) as server:
            return server.accept()[0]
    for _ in range(600):
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise SystemExit("rank 0 does not listen")


peer = connected()
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
payload, landing = bytes(options.bytes), bytearray(options.bytes)


def exchange() -> None:
    """All bytes to rank 1, and a byte back when they are there."""
    if os.environ["RANK"] == "0":
        peer.sendall(payload)
        peer.recv(1)
        return
    left = memoryview(landing)
    while left:
        left = left[peer.recv_into(left) :]
    peer.sendall(b"!")


def in_turns() -> None:
    """First the compute, then the bytes."""
    time.sleep(options.compute_ms / 1e3)
    exchange()


def overlapped() -> None:
    """The bytes go while it computes."""
    communication = threading.Thread(target=exchange)
    communication.start()
    time.sleep(options.compute_ms / 1e3)
    communication.join()


for step in range(options.steps):
    line: dict[str, float] = {"step": step}
    for name, run_step, is_wanted in (
        ("step_time_s", in_turns, options.overlap != "yes"),
        ("overlapped_step_time_s", overlapped, options.overlap != "no"),
    ):
        if is_wanted:
            start = time.perf_counter()
            run_step()
            line[name] = time.perf_counter() - start
    if os.environ["RANK"] == "0":
        print(json.dumps(line), flush=True)
