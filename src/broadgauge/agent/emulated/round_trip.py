"""How long is one byte's way to another emulated node and back?

Datagrams, as they know no handshake and are not retransmitted: on a link with a long delay one
exchange is enough, and on one that loses packets those that come back tell what the way takes.
"""

import socket
import struct
import time
from statistics import median

from broadgauge.agent.emulated.nodes import Node
from broadgauge.agent.emulated.side_pairs import TellPort, run_pairs
from broadgauge.agent.sides import Figures

NUM_ROUND_TRIPS = 211
"""A prime, so that a count in another tool's output is recognisably this probe's."""
_NUM_WARM_UP_ROUND_TRIPS = 23
_ROUND_TRIPS_S = 2.0
"""On a link with a long delay fewer round trips, at least one, tell as much."""
_SHORTEST_PATIENCE_S, _LONGEST_PATIENCE_S = 0.01, 0.2
"""How long an answer is waited for before the next is asked for; a late one counts all the same. Of
fifty questions in ten seconds one is answered though every other packet is lost."""
_LATE_RATIO = 4
"""An answer that takes this many times the longest so far is taken for lost."""


def measure_round_trip_time_s(sender: Node, receiver: Node) -> float:
    """The median of up to 211 exchanges, in two seconds or so; waits for ever for the first."""
    [(sent, _)] = run_pairs(sender, receiver, _ask, _answer, ends_with_caller=True)
    return sent["round_trip_time_s"]


def _ask(address: str, port: int) -> Figures:
    samples: list[float] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect((address, port))
        patience_s = _LONGEST_PATIENCE_S
        first_s = time.perf_counter()
        while len(samples) < _NUM_WARM_UP_ROUND_TRIPS + NUM_ROUND_TRIPS:
            took_s = _exchange(asking, patience_s)
            if took_s is not None:
                samples.append(took_s)
                longest_s = _LATE_RATIO * max(samples)
                patience_s = min(max(_SHORTEST_PATIENCE_S, longest_s), _LONGEST_PATIENCE_S)
            if samples and time.perf_counter() - first_s > _ROUND_TRIPS_S:
                break
    warm_up = min(_NUM_WARM_UP_ROUND_TRIPS, len(samples) // 10)
    return {"round_trip_time_s": median(samples[warm_up:])}


def _exchange(asking: socket.socket, patience_s: float) -> float | None:
    """How long did the exchange take whose answer is next? None: none came in time."""
    asking.settimeout(patience_s)
    try:
        asking.send(struct.pack("=d", time.perf_counter()))
        (begin_s,) = struct.unpack("=d", asking.recv(8))
    except TimeoutError:
        return None
    except OSError:  # no neighbour has answered yet
        time.sleep(patience_s)
        return None
    return float(time.perf_counter() - begin_s)


def _answer(address: str, tell_port: TellPort) -> Figures:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answering:
        answering.bind((address, 0))
        tell_port(answering.getsockname()[1])
        while True:
            data, asker = answering.recvfrom(8)
            answering.sendto(data, asker)
