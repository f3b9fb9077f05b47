"""What does `broadgauge whatif` print? The answers, and what of them was measured."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from broadgauge.catalog.catalog import Replaced
from broadgauge.predict.prediction import Interval
from broadgauge.predict.whatif.changes import WhatIf, WhatIfAnswer
from broadgauge.report.predict.whatif_words import check_lines, measured_lines, modelled_lines
from broadgauge.report.terminal.tables import heading, indented, print_table, sentence
from broadgauge.specs.units import show_count, show_ratio, show_size, show_time

HEAD = ("what changes", "step, 80 %", "tokens/s", "× now", "waits", "sends a node")
NOTHING = "nothing"


def print_whatif(found: WhatIf, notes: tuple[str, ...], console: Console) -> None:
    """One row an answer, then the parts in words."""
    model = found.base.workload.model
    name = f"{found.base.case.label} of {found.run_name}"
    sentence(f"{name}: {model.parameters / 1e6:.3g} M parameters", console, "bold")
    console.print()
    print_table(HEAD, [_row(each) for each in found.answers], console)
    for title, lines in (
        ("Measured", list(measured_lines(found))),
        ("Modelled", list(modelled_lines(found))),
        ("Checked on this run's other networks", list(check_lines(found))),
    ):
        if lines:
            heading(title, console)
            for line in lines:
                _item(line, console)
    for note in notes:
        sentence(f"note: {note}", console, "dim")


def _item(words: str, console: Console) -> None:
    lines = indented(Text(words), console)
    console.print(Text("- ").append_text(Text(lines[0].plain.strip())))
    for line in lines[1:]:
        console.print(line)


def _row(answer: WhatIfAnswer) -> tuple[str, ...]:
    step = f"{show_time(answer.step_s.value)}\n{_interval(answer.step_s)}"
    label = answer.label or NOTHING
    return (
        f"{label}, as measured" if answer.is_measured else label,
        step,
        show_count(answer.tokens_per_s),
        f"{answer.speedup_ratio:.3g}",
        show_ratio(answer.exposed_s / answer.step_s.value, 2),
        show_size(answer.network_bytes) if answer.network_bytes else "–",
    )


def _interval(interval: Interval) -> str:
    return f"{show_time(interval.low)} to {show_time(interval.high)}"


def whatif_document(
    found: WhatIf, notes: tuple[str, ...], replaced: Sequence[Replaced] = ()
) -> dict[str, object]:
    """The same as plain data, for `--json`."""
    base = found.base
    return {
        "format": "broadgauge whatif",
        "run": found.run_name,
        "case": {"key": base.case.key, "label": base.case.label},
        "measured": {
            "step_time_s": base.step_s.value,
            "step_without_communication_s": None
            if base.without_s is None
            else base.without_s.value,
            "device": base.device_name or None,
        },
        "calibration": {
            "communication_ratio": found.communication_ratio,
            "unexplained_s": found.excess_s,
            "is_identified": found.is_identified,
            "network_basis": found.basis,
            "compute_basis": found.machine_words,
        },
        "answers": list(_answers(found)),
        "checks": [
            {
                "label": each.label,
                "measured_s": each.measured_s,
                "predicted_s": each.predicted_s,
                "error_ratio": each.error_ratio,
            }
            for each in found.checks
        ],
        "words": {"measured": list(measured_lines(found)), "modelled": list(modelled_lines(found))},
        "notes": list(notes),
        "replaced": [asdict(each) for each in replaced],
    }


def _answers(found: WhatIf) -> Iterator[dict[str, object]]:
    for each in found.answers:
        yield {
            "label": each.label,
            "nodes": each.nodes,
            "is_measured": each.is_measured,
            "step_time_s": each.step_s.value,
            "low_s": each.step_s.low,
            "high_s": each.step_s.high,
            "tokens_per_s": each.tokens_per_s,
            "speedup_ratio": each.speedup_ratio,
            "compute_s": each.compute_s,
            "exposed_network_s": each.exposed_s,
            "network_bytes": each.network_bytes,
            "network_basis": each.basis or "catalog",
        }
