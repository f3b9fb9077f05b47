"""A step whose truth is known: it computes for so long, and exchanges so many bytes.

Two nodes, one rank each. Compute is a sleep, so that a busy machine changes it little; the bytes go
both ways at once over one TCP connection. With --overlap they go while it computes.
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
parser.add_argument("--overlap", action="store_true")
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
    """All bytes to the other rank, and as many from it."""
    sender = threading.Thread(target=peer.sendall, args=(payload,))
    sender.start()
    left = memoryview(landing)
    while left:
        left = left[peer.recv_into(left) :]
    sender.join()


for step in range(options.steps):
    start = time.perf_counter()
    if options.overlap:
        communication = threading.Thread(target=exchange)
        communication.start()
        time.sleep(options.compute_ms / 1e3)
        communication.join()
    else:
        time.sleep(options.compute_ms / 1e3)
        exchange()
    if os.environ["RANK"] == "0":
        step_time_s = time.perf_counter() - start
        print(json.dumps({"step": step, "step_time_s": step_time_s}), flush=True)
