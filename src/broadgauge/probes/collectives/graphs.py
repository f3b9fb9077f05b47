"""How long does each iteration take when the GPU runs all of them from one CUDA graph?

The host starts the graph once; barriers, the calls and the events between them are its nodes, so
that no call of the host's stands between two iterations. A communicator must have been used before
its calls can be captured: the warm-up does that.
"""

from collections.abc import Callable
from typing import Any

import torch

from broadgauge.probes.alignment import Alignment
from broadgauge.probes.devices import Device


class CapturedIterations:
    """The iterations of one size, captured and ready to be replayed."""

    def __init__(
        self, operation: Callable[[], None], iterations: int, align: Alignment, device: Device
    ) -> None:
        self._device = device
        self._edges = [(_external_event(), _external_event()) for _ in range(iterations)]

        def iterate() -> None:
            for begin, end in self._edges:
                align()
                begin.record()
                operation()
                end.record()

        self._all = _captured(iterate, device)
        self._one = _captured(operation, device)
        self.replay()  # the first launch also loads the graph onto the device

    def replay(self) -> tuple[float, ...]:
        """How long did each call take, after a barrier that is not counted?"""
        self._all.replay()
        self._device.synchronize()
        return tuple(begin.elapsed_time(end) / 1e3 for begin, end in self._edges)

    def call_once(self) -> None:
        """The same call, replayed by itself: for the check of its result."""
        self._one.replay()

    def release(self) -> None:
        """A communicator can't end while a graph holds it."""
        self._device.synchronize()
        self._all.reset()
        self._one.reset()


def _external_event() -> Any:
    """A node of the graph that notes the time at every replay. Source: CUDA runtime API,
    cudaEventRecordExternal."""
    event = torch.cuda.Event(enable_timing=True, external=True)
    event.record()  # made now: torch makes an event when it is first recorded
    return event


def _captured(work: Callable[[], None], device: Device) -> Any:
    device.synchronize()
    graph = torch.cuda.CUDAGraph()
    # NCCL's watchdog thread asks events while this thread captures: only this one is held to rules.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        work()
    return graph
