"""What does `broadgauge explain` print? A step's parts as bars, ranks, stragglers, collectives."""

from rich.console import Console

from broadgauge.report.explanation_words import (
    MOST_NAMES,
    PART_WORDS,
    beside_words,
    collective_rows,
    first_reduction_words,
    off_words,
    opening_words,
    probe_words,
    sized,
    time_or_dash,
)
from broadgauge.report.terminal_tables import heading, print_table, sentence
from broadgauge.results.measured_beside import NOTHING_BESIDE, MeasuredBeside
from broadgauge.specs.units import show_time
from broadgauge.traces.attribution.comparing import ExplanationComparison
from broadgauge.traces.explanation import StepPart, TraceExplanation

BAR = "█"
EIGHTHS = " ▏▎▍▌▋▊▉"
MOST_RANKS = 16
MOST_COLLECTIVES = 12

_SHORT_WORDS = PART_WORDS | {
    StepPart.FSDP_COPIES: "copies",
    StepPart.EXPOSED_COMMUNICATION: "exposed",
    StepPart.STRAGGLER_WAIT: "waits",
    StepPart.DATA_WAIT: "data",
    StepPart.HOST_IDLE: "idle",
}
"""Above the columns of a table of ranks."""


def print_explanation(
    found: TraceExplanation, console: Console, beside: MeasuredBeside = NOTHING_BESIDE
) -> None:
    """One job's step, in the order in which one asks."""
    sentence(opening_words(found), console, "bold")
    console.print()
    _print_parts(found, console)
    for words in (*beside_words(found), *off_words(found, beside)):
        sentence(words, console)
    for note in found.notes:
        sentence(note, console, "dim")
    if len(found.ranks) > 1:
        _print_ranks(found, console)
    if found.collectives:
        _print_collectives(found, console, beside)


def print_comparison(
    found: ExplanationComparison,
    console: Console,
    beside_a: MeasuredBeside = NOTHING_BESIDE,
    beside_b: MeasuredBeside = NOTHING_BESIDE,
) -> None:
    """A, B and what differs."""
    opening = (
        f"A {show_time(found.a.step_time_s)} a step, B {show_time(found.b.step_time_s)}: B takes "
    )
    sentence(f"{opening}{found.step_ratio:.2f} × as long", console, "bold")
    console.print()
    rows = [
        (
            PART_WORDS[StepPart(each.part)],
            time_or_dash(each.a_s),
            _share(each.a_share_ratio),
            time_or_dash(each.b_s),
            _share(each.b_share_ratio),
            _signed(each.difference_s),
        )
        for each in found.parts
        if each.a_s or each.b_s
    ]
    print_table(("part", "A", "of A", "B", "of B", "B − A"), rows, console)
    if found.collectives:
        heading("Collectives, B over A", console)
        print_table(
            ("", "A", "B", "time", "busbw"),
            [
                (
                    f"{each.kind}{sized(each.message_bytes)}",
                    show_time(each.a_transfer_s),
                    show_time(each.b_transfer_s),
                    _times(each.time_ratio),
                    _times(each.busbw_ratio),
                )
                for each in found.collectives[:MOST_COLLECTIVES]
            ],
            console,
        )
    for label, only in (("A", found.only_a), ("B", found.only_b)):
        if only:
            names = ", ".join(f"{one.kind}{sized(one.message_bytes)}" for one in only[:MOST_NAMES])
            sentence(f"only in {label}: {names}", console, "dim")
    for label, each in (("A", found.a), ("B", found.b)):
        if each.first_reduction is not None:
            sentence(
                f"{label}: {first_reduction_words(each.first_reduction, each.step_time_s)}", console
            )
        beside = beside_a if label == "A" else beside_b
        for words in off_words(each, beside):
            sentence(f"{label}: {words}", console)
        for note in each.notes:
            sentence(f"{label}: {note}", console, "dim")


def _print_parts(found: TraceExplanation, console: Console) -> None:
    """One line a part: its name, its time, its share, a bar."""
    parts = found.parts_s()
    shown = [(part, parts[part]) for part in StepPart if parts[part]]
    names = [PART_WORDS[part] for part, _ in shown]
    times = [show_time(time_s or 0.0) for _, time_s in shown]
    name_width, time_width = max(map(len, names)), max(map(len, times))
    room = max(4, min(30, console.width - name_width - time_width - 10))
    for name, time, (_, time_s) in zip(names, times, shown, strict=True):
        share = (time_s or 0.0) / found.step_time_s
        line = f"{name:<{name_width}}  {time:>{time_width}}  {share:>4.0%}  {_bar(share * room)}"
        console.print(line.rstrip(), soft_wrap=True)


def _bar(length: float) -> str:
    whole = int(length)
    return BAR * whole + EIGHTHS[int((length - whole) * len(EIGHTHS))].strip()


def _print_ranks(found: TraceExplanation, console: Console) -> None:
    heading("Ranks", console)
    used = [part for part in StepPart if any(rank.parts.of(part) for rank in found.ranks)]
    rows = []
    for rank in found.ranks[:MOST_RANKS]:
        parts = rank.parts.seconds(len(rank.steps))
        cells = [time_or_dash(parts[part]) for part in used]
        rows.append((str(rank.rank), show_time(rank.step_time_s), *cells))
    head = ("rank", "step", *(_SHORT_WORDS[part] for part in used))
    print_table(head, rows, console)
    if len(found.ranks) > MOST_RANKS:
        more = len(found.ranks) - MOST_RANKS
        sentence(f"{more} more ranks: --json", console, "dim")


def _print_collectives(found: TraceExplanation, console: Console, beside: MeasuredBeside) -> None:
    heading("Collectives", console)
    head, rows = collective_rows(found.collectives[:MOST_COLLECTIVES], beside.probe)
    print_table(head, rows, console)
    for words in probe_words(beside):
        sentence(words, console, "dim")
    if len(found.collectives) > MOST_COLLECTIVES:
        sentence(f"{len(found.collectives) - MOST_COLLECTIVES} more: --json", console, "dim")


def _signed(time_s: float | None) -> str:
    if time_s is None:
        return "–"
    return f"{'−' if time_s < 0 else '+'}{show_time(abs(time_s))}"


def _share(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.0%}"


def _times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f} ×"
