"""A trace of any size, indented as Kineto's, with as many operators a kernel as real ones have."""

import json
from pathlib import Path
from typing import Any

from tests.traces import jobs

OPERATORS = ("empty", "view", "copy_", "t", "transpose", "as_strided")
"""Small ones around each kernel: six in seven operators of a training launch nothing."""


def write_large(path: Path, num_bytes: int) -> int:
    """One rank of an FSDP2 training, step after step; returns the number of events."""
    document = jobs.fsdp2(steps=1, layers=200).document(0)
    events = [event for event in document.pop("traceEvents") if event["ph"] == "X"]
    step = [each for event in events for each in (event, *_around(event))]
    begin = min(event["ts"] for event in step)
    span = max(event["ts"] + event["dur"] for event in step) - begin + 10
    written = number = 0
    with path.open("w") as file:
        file.write(json.dumps(document)[:-1] + ',\n"traceEvents": [\n')
        while written < num_bytes:
            text = ",\n".join(_kineto(event, number, span) for event in step)
            file.write((",\n" if number else "") + text)
            written += len(text)
            number += 1
        file.write("\n]}")
    return number * len(step)


def _around(event: dict[str, Any]) -> list[dict[str, Any]]:
    if event["cat"] != "cpu_op":
        return []
    told = {"Record function id": 0, "Sequence number": 28, "Fwd thread id": 0, "Ev Idx": 4}
    return [
        {
            **event,
            "name": f"aten::{name}",
            "ts": event["ts"] + 0.1 * place,
            "dur": 0.3,
            "args": {"External id": place, **told},
        }
        for place, name in enumerate(OPERATORS)
    ]


def _kineto(event: dict[str, Any], number: int, span: float) -> str:
    name = event["name"]
    if name.startswith("ProfilerStep"):
        name = f"ProfilerStep#{number}"
    arguments = dict(event["args"])
    if "correlation" in arguments:
        arguments["correlation"] += 100_000 * number
    told = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in arguments.items())
    return (
        f'  {{\n    "ph": "X", "cat": "{event["cat"]}", "name": "{name}", "pid": {event["pid"]}, '
        f'"tid": {event["tid"]},\n    "ts": {event["ts"] + number * span:.3f}, '
        f'"dur": {event["dur"]:.3f},\n    "args": {{\n      {told}\n    }}\n  }}'
    )
