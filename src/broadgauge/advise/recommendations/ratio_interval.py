"""How sure is the ratio of two steps of the same training over two networks?

Kernels and launches are the same in both, so what is not known of them nearly cancels; what is left
is what is not known of each network's rate.
"""

import math

from broadgauge.catalog.networks import known_transports
from broadgauge.predict.case import RDMA_TRANSPORTS
from broadgauge.predict.intervals.rate_range import rate_range_gbyte_per_s
from broadgauge.predict.prediction import Interval, Prediction


def ratio_interval(worse: Prediction, better: Prediction) -> Interval:
    """Of worse over better, 80 %: both networks' rates, and kernels that are equally off in both.

    Rates of one transport err together, those of two apart; independent terms add as squares.
    """
    ratio = _ratio(worse, better, 1.0, 1.0, 1.0)
    spreads = _spread_ratio(worse), _spread_ratio(better)
    step = better.step_time_s
    terms = [
        [_ratio(worse, better, 1.0, 1.0, end / step.value) for end in (step.low, step.high)],
    ]
    if worse.case.fabric.transport == better.case.fabric.transport:
        terms.append([_ratio(worse, better, s, t, 1.0) for s, t in _ends(*spreads)])
    else:
        terms.append([_ratio(worse, better, s, 1.0, 1.0) for s, _ in _ends(*spreads)])
        terms.append([_ratio(worse, better, 1.0, t, 1.0) for _, t in _ends(*spreads)])
    below = math.hypot(*(math.log(ratio / min(ratio, *ends)) for ends in terms))
    above = math.hypot(*(math.log(max(ratio, *ends) / ratio) for ends in terms))
    return Interval(value=ratio, low=ratio * math.exp(-below), high=ratio * math.exp(above))


def _ends(one: float, other: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Both faster, and both slower than predicted."""
    return (1 / one, 1 / other), (one, other)


def _ratio(
    worse: Prediction, better: Prediction, worse_time: float, better_time: float, kernels: float
) -> float:
    return _step_s(worse, worse_time, kernels) / _step_s(better, better_time, kernels)


def _step_s(prediction: Prediction, network: float, kernels: float) -> float:
    """With its network, and the rest, taking so many times as long; hidden time may come out."""
    exposed_s = prediction.parts.exposed_network_s
    rest_s = (prediction.step_time_s.value - exposed_s) * kernels
    busy_s = exposed_s + prediction.overlapped_communication_s
    return max(rest_s + exposed_s * network, busy_s * network if network > 1 else 0.0)


def _spread_ratio(prediction: Prediction) -> float:
    """By what factor its rate may be off, either way; 1: measured.

    Source: catalog/transports.yaml, low and high.
    """
    fabric = prediction.case.fabric
    if prediction.is_calibrated or fabric.measured_node_gbyte_per_s is not None or fabric.curves:
        return 1.0
    found = rate_range_gbyte_per_s(prediction.case)
    if found is not None:
        return math.sqrt(found[1] / found[0])
    transport = fabric.transport if fabric.transport in RDMA_TRANSPORTS else "infiniband"
    entry = next(each for each in known_transports() if each.name == transport)
    usual = entry.typical_ratio
    return 1.0 if usual is None else math.sqrt(usual.high / usual.low)
