"""How long do products, attention, copies, the optimizer and launches take on this device?"""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from broadgauge.probes.calibration.results import (
    AttentionTime,
    CopyTime,
    GemmTime,
    LaunchTime,
    OptimizerTime,
    Timing,
)
from broadgauge.probes.calibration.shapes import AttentionShape, Gemm
from broadgauge.probes.calibration.timing import time_call, timing_of
from broadgauge.probes.devices import Device
from broadgauge.probes.training.gpt import GptLayer
from broadgauge.probes.training.types import torch_type

OPERATIONS = 1000
"""Queued in a row: more than a GPU's launch queue holds would measure the GPU."""
LAUNCH_HIDDEN, LAUNCH_TOKENS = 64, 8


def time_gemm(shape: Gemm, device: Device, budget_s: float) -> GemmTime:
    make = _maker(shape.dtype, device)
    x, weight = make(shape.tokens, shape.inputs), make(shape.outputs, shape.inputs)
    y = make(shape.tokens, shape.outputs)

    def backward() -> None:
        torch.mm(y, weight)
        torch.mm(y.t(), x)

    return GemmTime(
        dtype=shape.dtype,
        tokens=shape.tokens,
        inputs=shape.inputs,
        outputs=shape.outputs,
        forward=time_call(lambda: functional.linear(x, weight), device, budget_s=budget_s),
        backward=time_call(backward, device, budget_s=budget_s),
    )


def time_attention(shape: AttentionShape, device: Device, budget_s: float) -> AttentionTime:
    make = _maker(shape.dtype, device)
    size = (shape.batch, shape.heads, shape.seq_len, shape.head_dim)
    query, key, value = (make(*size).requires_grad_() for _ in range(3))
    gradient = make(*size)
    mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    def forward() -> None:
        functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    def backward() -> None:
        torch.autograd.grad(mixed, (query, key, value), gradient, retain_graph=True)

    return AttentionTime(
        dtype=shape.dtype,
        batch=shape.batch,
        heads=shape.heads,
        head_dim=shape.head_dim,
        seq_len=shape.seq_len,
        forward=time_call(forward, device, budget_s=budget_s),
        backward=time_call(backward, device, budget_s=budget_s),
    )


def time_copy(size_bytes: int, device: Device, budget_s: float) -> CopyTime:
    source = torch.zeros(size_bytes // 4, device=device.torch_device)
    target = torch.empty_like(source)
    timing = time_call(lambda: target.copy_(source), device, budget_s=budget_s)
    return CopyTime(size_bytes=size_bytes, time=timing)


def time_optimizer(
    num_parameters: int, num_tensors: int, device: Device, budget_s: float
) -> OptimizerTime:
    each = num_parameters // num_tensors
    parameters = [torch.zeros(each, device=device.torch_device) for _ in range(num_tensors)]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    optimizer = torch.optim.AdamW(parameters, fused=True)
    timing = time_call(optimizer.step, device, budget_s=budget_s)
    return OptimizerTime(parameters=each * num_tensors, tensors=num_tensors, time=timing)


def time_launches(device: Device, budget_s: float) -> LaunchTime:
    """The host's own time: nothing is waited for until a sample is over."""
    tiny = torch.zeros(8, device=device.torch_device)
    layer = GptLayer(LAUNCH_HIDDEN, 1).to(device.torch_device)
    x_bth = torch.zeros(1, LAUNCH_TOKENS, LAUNCH_HIDDEN, device=device.torch_device)
    x_bth.requires_grad_()

    def operations() -> None:
        for _ in range(OPERATIONS):
            torch.add(tiny, 1.0, out=tiny)

    outputs: list[Any] = []

    def forward() -> None:
        outputs.append(layer(x_bth))

    def backward() -> None:
        outputs.pop().sum().backward()

    whole = _host_times_s(operations, device, budget_s)
    forwards, backwards = _alternating_s(forward, backward, device, budget_s)
    return LaunchTime(
        operation=timing_of([sample_s / OPERATIONS for sample_s in whole]),
        layer_forward=forwards,
        layer_backward=backwards,
    )


def _maker(dtype: str, device: Device) -> Callable[..., Any]:
    """Random numbers: products of zeros take less power, so a GPU clocks higher."""
    return lambda *size: torch.randn(
        *size,
        device=device.torch_device,
        dtype=torch_type(dtype),  # type: ignore[arg-type]  # a DataType, from a shape
    )


def _host_times_s(call: Callable[[], None], device: Device, budget_s: float) -> list[float]:
    samples_s: list[float] = []
    call()
    until_s = time.perf_counter() + budget_s
    while len(samples_s) < 5 or (time.perf_counter() < until_s and len(samples_s) < 200):
        device.synchronize()
        began_s = time.perf_counter()
        call()
        samples_s.append(time.perf_counter() - began_s)
    return samples_s


def _alternating_s(
    forward: Callable[[], None], backward: Callable[[], None], device: Device, budget_s: float
) -> tuple[Timing, Timing]:
    """A pass forward and one backward, in turns."""
    forward()
    backward()
    forwards_s: list[float] = []
    backwards_s: list[float] = []
    until_s = time.perf_counter() + 2 * budget_s
    while len(forwards_s) < 5 or (time.perf_counter() < until_s and len(forwards_s) < 200):
        device.synchronize()
        began_s = time.perf_counter()
        forward()
        between_s = time.perf_counter()
        backward()
        forwards_s.append(between_s - began_s)
        backwards_s.append(time.perf_counter() - between_s)
    return timing_of(forwards_s), timing_of(backwards_s)
