"""How fast is a product that was not measured? As those of about its shape that were.

Rates are averaged in logarithms, weighted by nearness in powers of two of each size, so a measured
shape has its own rate, and one beyond all measured has that of the nearest.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broadgauge.predict.asking.workload_case import PRECISIONS
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns
from broadgauge.specs.machines.system import AttentionTime, Compute, GemmTime
from broadgauge.specs.workloads.gpt import DataType

NEAREST_POWER = 3.0
"""Of the distance, in powers of two, with which a measured point's weight falls."""
Points = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTimes:
    """Seconds of both passes."""

    forward_s: Times
    backward_s: Times

    def times(self, count: Times) -> "PassTimes":
        """Of so many, one after another."""
        return PassTimes(forward_s=count * self.forward_s, backward_s=count * self.backward_s)


def gemm(
    columns: Columns, compute: Compute, tokens: Times, inputs: Times, outputs: Times
) -> PassTimes:
    """A linear layer, at the rate of measured ones of about its shape."""
    forward_s, backward_s = np.zeros(len(columns)), np.zeros(len(columns))
    wanted = np.log2(np.stack([tokens, inputs, outputs], axis=1))
    flops = 2.0 * tokens * inputs * outputs
    for mask, dtype in by_dtype(columns, {each.dtype for each in compute.gemms}):
        mine = [each for each in compute.gemms if each.dtype == dtype]
        points = np.log2([[each.tokens, each.inputs, each.outputs] for each in mine])
        weights = nearness(wanted[mask], points)
        forward_s[mask] = flops[mask] / np.exp(weights @ np.log(_rates(mine, is_forward=True)))
        backward = np.exp(weights @ np.log(_rates(mine, is_forward=False)))
        backward_s[mask] = 2 * flops[mask] / backward
    return PassTimes(forward_s=forward_s, backward_s=backward_s)


def _rates(gemms: list[GemmTime], *, is_forward: bool) -> Points:
    return np.array(
        [
            each.flops / each.forward.median_s
            if is_forward
            else 2 * each.flops / each.backward.median_s
            for each in gemms
        ]
    )


def attention(columns: Columns, compute: Compute) -> PassTimes:
    """Its core, at the rate of measured ones of about its length."""
    forward_s, backward_s = np.zeros(len(columns)), np.zeros(len(columns))
    shapes = columns.shapes
    heads = columns.micro_batch * shapes.heads / columns.tensor_parallel
    length, width = columns.seq_len / columns.context_parallel, shapes.head_size
    wanted = np.log2(np.stack([heads, length, width], axis=1))
    flops = 2.0 * heads * length * columns.seq_len * width
    for mask, dtype in by_dtype(columns, {each.dtype for each in compute.attention}):
        mine = [each for each in compute.attention if each.dtype == dtype]
        sizes = [[each.batch * each.heads, each.seq_len, each.head_dim] for each in mine]
        weights = nearness(wanted[mask], np.log2(sizes))
        for seconds, timings in (
            (forward_s, [each.forward.median_s for each in mine]),
            (backward_s, [each.backward.median_s for each in mine]),
        ):
            rates = np.array([_core_flops(each) for each in mine]) / timings
            seconds[mask] = flops[mask] / np.exp(weights @ np.log(rates))
    return PassTimes(forward_s=forward_s, backward_s=backward_s)


def _core_flops(each: AttentionTime) -> float:
    """Of a causal pass, whose half of the scores is left out."""
    return 2.0 * each.batch * each.heads * each.seq_len**2 * each.head_dim


def by_dtype(
    columns: Columns, measured: set[DataType]
) -> list[tuple[npt.NDArray[np.bool_], DataType]]:
    """Which cases go by the points of which type? By float32's where theirs was not measured."""
    of_case = np.array([case.precision for case in columns.cases])
    masks: dict[DataType, npt.NDArray[np.bool_]] = {}
    fallback: DataType = "float32" if "float32" in measured else "bfloat16"
    for precision in dict.fromkeys(of_case.tolist()):
        named = [dtype for dtype, name in PRECISIONS.items() if name == precision]
        dtype = next((each for each in named if each in measured), None)
        if dtype is None:
            half: DataType = "bfloat16"
            is_half = precision in ("fp16", "fp8") and half in measured
            dtype = half if is_half else fallback
        mask = of_case == precision
        masks[dtype] = masks[dtype] | mask if dtype in masks else mask
    return [(mask, dtype) for dtype, mask in masks.items()] if measured else []


def nearness(wanted: Points, points: Points) -> Points:
    """Weights over the measured points, each row 1 in all: float64[cases, points]."""
    distance = np.sqrt(((wanted[:, None, :] - points[None, :, :]) ** 2).sum(axis=2))
    weights = 1.0 / (distance + 1e-6) ** NEAREST_POWER
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
