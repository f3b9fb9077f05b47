"""One rank's device, measured: `python -m broadgauge.probes.calibration cpu|cuda DESCRIPTOR CORES`.

Writes lines of JSON to the file descriptor: `{"doing": "products, 3 of 20"}` while it works, at the
end `{"threads": …, "torch": …, "cuda": …, "compute": …, "notes": […]}`. A process of its own, so
that the tool never imports torch and a GPU is free again when it ends; when its reader is gone, the
next line ends it.
"""

import importlib.metadata
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import torch

from broadgauge.messages.codec import encode
from broadgauge.messages.vocabulary import Device as DeviceKind
from broadgauge.probes.calibration.kernels import (
    time_attention,
    time_copy,
    time_gemm,
    time_launches,
    time_optimizer,
)
from broadgauge.probes.calibration.results import Compute
from broadgauge.probes.calibration.shapes import Choice, choice
from broadgauge.probes.calibration.steps import time_step
from broadgauge.probes.devices import Device, choose_device
from broadgauge.probes.trial import RefusedError

MEMORY_SHARE = 0.6
"""Of the free memory, that a single copy or optimizer may take."""
OPTIMIZER_BYTES = 16
"""A parameter's weight, gradient and two moments, float32."""


def main(kind: DeviceKind, results: TextIO) -> int:
    device = choose_device(kind, 0)
    measured, notes = measure(device, choice(kind), results)
    _say(
        results,
        {
            "threads": torch.get_num_threads(),
            "torch": importlib.metadata.version("torch"),
            "cuda": torch.version.cuda,
            "compute": encode(measured),
            "notes": notes,
        },
    )
    return 0


def measure(device: Device, wanted: Choice, results: TextIO) -> tuple[Compute, list[str]]:
    """All of it, and what was left out, in sentences."""
    notes: list[str] = []
    budget_s = wanted.budget_s
    limit_bytes = MEMORY_SHARE * device.free_memory_bytes()
    launch = time_launches(device, budget_s)
    gemms = [
        time_gemm(shape, device, budget_s) for shape in _told("products", wanted.gemms, results)
    ]
    attention = [
        time_attention(shape, device, budget_s)
        for shape in _told("attention", wanted.attention, results)
    ]
    copies = [
        time_copy(size_bytes, device, budget_s)
        for size_bytes in _told("copies", wanted.copy_bytes, results)
        if 2 * size_bytes < limit_bytes
    ]
    optimizer = [
        time_optimizer(parameters, tensors, device, budget_s)
        for parameters, tensors in _told("optimizer", wanted.optimizer, results)
        if OPTIMIZER_BYTES * parameters < limit_bytes
    ]
    steps = []
    for training in _told("training steps", wanted.trainings, results):
        try:
            steps.append(time_step(training, device))
        except (RefusedError, torch.OutOfMemoryError) as error:
            model = training.model
            notes.append(f"no step of {model.layers} x {model.hidden}: {_first_line(error)}")
    compute = Compute(
        gemms=tuple(gemms),
        attention=tuple(attention),
        copies=tuple(copies),
        optimizer=tuple(optimizer),
        launch=launch,
        steps=tuple(steps),
    )
    return compute, notes


def _told(what: str, items: tuple[Any, ...], results: TextIO) -> Iterator[Any]:
    for number, item in enumerate(items, start=1):
        _say(results, {"doing": f"{what}, {number} of {len(items)}"})
        yield item


def _say(results: TextIO, line: dict[str, Any]) -> None:
    results.write(json.dumps(line, allow_nan=False) + "\n")
    results.flush()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


if __name__ == "__main__":
    wanted_kind: DeviceKind = "cuda" if sys.argv[1] == "cuda" else "cpu"
    os.sched_setaffinity(0, [int(core) for core in sys.argv[3].split(",")])
    with os.fdopen(int(sys.argv[2]), "w") as descriptor:
        sys.exit(main(wanted_kind, descriptor))
