"""A DDP step on CPUs as the profiler traces it, whose parts are known by their making."""

import json
from pathlib import Path
from typing import Any

MAIN, WORKER = 100, 200
LOAD_US, FORWARD_US, BACKWARD_US, PYTHON_US, OPTIMIZER_US = 500, 2000, 3000, 40, 300


def documents(
    late_us: tuple[int, ...], *, transfer_us: int = 1500, steps: int = 3
) -> list[dict[str, Any]]:
    """Each rank's trace. `late_us`: how much longer a rank's backward pass takes than BACKWARD_US.

    A step: loading, Python, forward, backward; the gradients are reduced on a thread of Gloo's
    from the end of the backward pass on, and the main thread waits; then the optimizer.
    """
    events: list[list[dict[str, Any]]] = [[] for _ in late_us]
    now = 1_000
    for number in range(steps):
        arrivals = []
        for rank, late in enumerate(late_us):
            own, time = events[rank], now
            own.append(_span("user_annotation", _LOADER, MAIN, time, LOAD_US))
            own.append(_span("cpu_op", "aten::stack", MAIN, time + 10, 50))
            time += LOAD_US + PYTHON_US
            own.append(_span("cpu_op", "aten::linear", MAIN, time, FORWARD_US))
            own.append(_span("cpu_op", "aten::addmm", MAIN, time + 5, FORWARD_US - 10))
            time += FORWARD_US
            length = BACKWARD_US + late
            name = "autograd::engine::evaluate_function: AddmmBackward0"
            own.append(_span("cpu_op", name, MAIN, time, length))
            own.append(_span("cpu_op", "aten::mm", MAIN, time, length))
            time += length
            own.append(_span("cpu_op", "c10d::allreduce_", MAIN, time, 0))
            arrivals.append(time)
        done = max(arrivals) + transfer_us
        for rank, arrival in enumerate(arrivals):
            own = events[rank]
            own.append(_span("user_annotation", "gloo:all_reduce", WORKER, arrival, done - arrival))
            own.append(_span("cpu_op", "aten::add_", MAIN, done, OPTIMIZER_US))
            step = _span(
                "user_annotation", f"ProfilerStep#{number}", MAIN, now, done + OPTIMIZER_US - now
            )
            own.append(step)
        now = done + OPTIMIZER_US
    return [
        {
            "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": len(late_us)},
            "traceEvents": own,
        }
        for rank, own in enumerate(events)
    ]


def write(folder: Path, late_us: tuple[int, ...], **kwargs: int) -> list[Path]:
    paths = []
    for rank, document in enumerate(documents(late_us, **kwargs)):
        paths.append(folder / f"rank{rank}.json")
        paths[-1].write_text(json.dumps(document))
    return paths


_LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def _span(category: str, name: str, thread: int, start: int, length: int) -> dict[str, Any]:
    event = {"ph": "X", "cat": category, "name": name, "pid": 9, "tid": thread}
    return event | {"ts": start, "dur": length}
