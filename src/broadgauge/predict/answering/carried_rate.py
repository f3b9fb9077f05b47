"""At what rate does a prediction let the network carry a node's bytes?"""

from broadgauge.predict.facts.arrays import ROUNDING_RATIO
from broadgauge.predict.prediction import Prediction


def carried_gbyte_per_s(prediction: Prediction) -> float | None:
    """Out of a node, latency included.

    None: nothing is sent, or the bytes and the busy time are not of the same transfers, as with
    pipeline stages on several nodes. It shows in a rate above what the links have, or in a step
    that waits for the network longer than its links are busy.
    """
    busy_s, fabric = prediction.network_busy_s, prediction.case.fabric
    most = 1 + ROUNDING_RATIO
    if busy_s <= 0 or prediction.parts.exposed_network_s > busy_s * most:
        return None
    rate = prediction.network_bytes / busy_s / 1e9
    nominal = None if fabric.node_gbps is None else fabric.node_gbps / 8
    limits = [each for each in (nominal, fabric.measured_node_gbyte_per_s) if each is not None]
    return None if limits and rate > max(limits) * most else rate or None
