"""What does `predict EXPERIMENT --system FILE` print? The file's trainings on that machine."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console

from broadgauge.predict.system.experiment_here import HereStep
from broadgauge.report.terminal.tables import print_table, sentence
from broadgauge.specs.machines.system import System
from broadgauge.specs.units import show_count, show_ratio, show_size, show_time

HEAD = ("case", "step", "tokens/s", "without\ncomm.", "network cost", "bytes a node\nand step")
NO_INTERVAL = (
    "no interval is known for this machine: `broadgauge calibrate --check RUN` compares the system "
    "file with a run"
)


def print_here(
    steps: Sequence[HereStep], system: System, notes: Sequence[str], console: Console
) -> None:
    """A row a training."""
    sentence(f"{system.device.name} of {system.machine.hostname}, as it was measured", console)
    console.print()
    print_table(HEAD, [_cells(step) for step in steps], console)
    console.print()
    sentence(NO_INTERVAL, console, "dim")
    for note in notes:
        sentence(f"note: {note}", console, "dim")


def here_json(steps: Sequence[HereStep], system: System, notes: Sequence[str]) -> str:
    """One object."""
    document = {
        "format": "broadgauge prediction on a system",
        "system": {"hostname": system.machine.hostname, "device": system.device.name},
        "notes": [*notes, NO_INTERVAL],
        "cases": [asdict(step) | {"network_cost_s": step.network_cost_s} for step in steps],
    }
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _cells(step: HereStep) -> tuple[str, ...]:
    share = show_ratio(step.network_cost_s / step.step_time_s, 2)
    return (
        step.label,
        show_time(step.step_time_s),
        show_count(step.tokens_per_s),
        show_time(step.step_without_communication_s),
        f"{show_time(step.network_cost_s)}\n{share} of step" if step.network_bytes else "–",
        show_size(round(step.network_bytes)) if step.network_bytes else "–",
    )
