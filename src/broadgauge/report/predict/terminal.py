"""What does `broadgauge predict` print? A table, the bottlenecks in words, and two small plots."""

import itertools
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from broadgauge.predict.answering.answers import Answer, Answers
from broadgauge.predict.answering.knee import BandwidthCurve
from broadgauge.report.predict.words import (
    NEAREST_WORDS,
    NOTHING,
    above_floor,
    bottleneck,
    common_words,
    curve_titles,
    exposed_words,
    fitting_first,
    knee_words,
    label_words,
    limits,
    memory_parts,
    memory_words,
    show_gib,
    show_interval,
    tokens_words,
    uncertain,
    unfamiliar,
    with_nearest,
)
from broadgauge.report.terminal.tables import fits_columns, heading, print_table, sentence
from broadgauge.report.words.cost import UNKNOWN, tokens_title, usd_words, whole_cells
from broadgauge.specs.units import show_rate, show_ratio, show_time

BARS = " ▏▎▍▌▋▊▉█"
HEIGHTS = "▁▂▃▄▅▆▇█"
MOST_BARS = 24
MOST_UNCERTAIN = 3
"""Terms, of the first cases that rest on one."""
MOST_NEAREST = 5
"""Cases that are shown where none fits."""
ROWS = ("carried", "step   ")
HEAD = (
    *("case", "step\n80 % interval", "tokens/s", "MFU", "scaling", "exposed\ncomm."),
    *("memory a GPU", "bottleneck", "$/10⁹\ntokens"),
)


def print_answers(
    answers: Answers, assumed: Sequence[str], notes: Sequence[str], console: Console
) -> None:
    """Everything, in the order in which one asks."""
    sentence(common_words(answers), console, "bold")
    if assumed:
        sentence(f"assumed: {'; '.join(assumed)}", console, "dim")
    console.print()
    is_any = any(each.prediction.memory.is_fitting for each in answers.answers)
    if is_any and answers.num_cases > len(answers.answers):
        words = (
            f"{answers.num_cases:,} cases: the {len(answers.answers)} of them that fit with most "
            "tokens/s (all with --csv or --json)"
        )
        sentence(words, console)
    shown = fitting_first(answers.answers)
    fitting = [each for each in shown if each.prediction.memory.is_fitting]
    if not fitting:
        nearest = label_words(shown[0])
        few = shown[:MOST_NEAREST]
        number = f"none of {answers.num_cases:,}" if answers.num_cases > 1 else "it does not"
        verb = "fits" if answers.num_cases > 1 else "fit"
        more = f"; {nearest} misses by least" if answers.num_cases > 1 else ""
        sentence(f"{number} {verb} in the GPUs' memory{more}", console, "bold yellow")
        shown = few
    print_rows([*with_nearest(shown, answers.over)], console)
    if any(each.nearest for each in answers.over):
        sentence(NEAREST_WORDS, console, "dim")
    if len(shown) < len(answers.answers):
        words = f"{len(answers.answers) - len(shown)} more that need more memory: --csv or --json"
        sentence(words, console, "dim")
    _print_limits(shown, console)
    _print_over(answers, console)
    _print_uncertain(shown, console)
    _print_throughput(fitting, console)
    for curve, title in zip(answers.curves, curve_titles(answers), strict=True):
        _print_curve(curve, title, console)
        sentence(above_floor(answers, curve), console)
    if answers.num_more_curves:
        sentence(f"{answers.num_more_curves} more settings have curves in --json", console, "dim")
    if notes:
        console.print()
    for note in notes:
        sentence(f"note: {note}", console, "dim")


def print_rows(answers: Sequence[Answer], console: Console) -> None:
    """One table where it fits, else as few as do, each with the cases' names."""
    head, rows = _head(answers), [_cells(answer) for answer in answers]
    start = 1
    while start < len(head):
        end = len(head)
        while end > start + 1 and not fits_columns(*_part(head, rows, start, end), console):
            end -= 1
        if start > 1:
            console.print()
        print_table(*_part(head, rows, start, end), console)
        start = end


Rows = Sequence[tuple[str, ...]]


def _head(answers: Sequence[Answer]) -> tuple[str, ...]:
    """With a whole training's time and cost where its tokens were said."""
    whole = next((answer.whole for answer in answers if answer.whole is not None), None)
    if whole is None:
        return HEAD
    title = tokens_title(whole.tokens_count)
    return (*HEAD, f"{title}\n80 % interval", f"cost of {title}\n80 % interval")


def _part(head: tuple[str, ...], rows: Rows, start: int, end: int) -> tuple[tuple[str, ...], Rows]:
    """The names, and these columns."""
    return (head[0], *head[start:end]), [(row[0], *row[start:end]) for row in rows]


def _cells(answer: Answer) -> tuple[str, ...]:
    prediction = answer.prediction
    step = show_time(prediction.step_time_s.value)
    waiting, share = exposed_words(answer)
    scaling = answer.scaling_ratio
    return (
        label_words(answer),
        f"{step}\n{show_interval(prediction.step_time_s)}",
        tokens_words(answer),
        show_ratio(prediction.mfu_ratio, 2),
        NOTHING if scaling is None else show_ratio(scaling, 2),
        f"{waiting}\n{share}".strip(),
        memory_words(prediction.memory),
        bottleneck(answer),
        usd_words(answer.usd_per_gigatoken) if prediction.memory.is_fitting else NOTHING,
        *_whole(answer),
    )


def _whole(answer: Answer) -> tuple[str, ...]:
    if answer.whole is None:
        return ()
    if not answer.prediction.memory.is_fitting:
        return NOTHING, NOTHING
    time, times, usd, usds = whole_cells(answer.whole)
    return f"{time}\n{times}", f"{usd}\n{usds}".strip()


def _print_limits(answers: Sequence[Answer], console: Console) -> None:
    """What a step waits for."""
    console.print()
    for words in limits(answers):
        sentence(words, console)


def _print_over(answers: Answers, console: Console) -> None:
    """What does not fit, by how much, and what would make it fit; those alike together."""
    said: dict[str, list[str]] = {}
    for over in answers.over:
        use = over.answer.prediction.memory
        much = show_gib(use.total_bytes - use.capacity_bytes)
        fits = f"; it fits with {', or with '.join(over.words)}" if over.words else ""
        if over.answer.prediction.case.nodes == 1 and not over.has_network:
            fits += "; for more nodes name a --network"
        words = f"not fit, {much} too much: {memory_parts(use)}{fits}"
        said.setdefault(words, []).append(label_words(over.answer))
    for words, labels in said.items():
        verb = "does" if len(labels) == 1 else "do"
        sentence(f"{'; '.join(labels)} {verb} {words}", console, "yellow")
    num_over = sum(not each.prediction.memory.is_fitting for each in answers.answers)
    if num_over > len(answers.over):
        sentence(f"{num_over - len(answers.over)} more do not fit", console, "yellow")


def _print_uncertain(answers: Sequence[Answer], console: Console) -> None:
    """What would narrow the intervals most, and which of them are guesses."""
    for words in itertools.islice(uncertain(answers), MOST_UNCERTAIN):
        sentence(words, console, "dim")
    for words in itertools.islice(unfamiliar(answers), MOST_UNCERTAIN):
        sentence(words, console, "dim")
    if any(answer.prediction.is_outside for answer in answers):
        words = (
            "some cases lie outside of what was measured: their intervals are guesses of a class"
        )
        sentence(words, console, "dim")
    if any(answer.usd_per_gigatoken is None for answer in answers):
        sentence(f"cost {UNKNOWN}: --usd-per-gpu-hour tells the price", console, "dim")


def _print_throughput(answers: Sequence[Answer], console: Console) -> None:
    """A bar a case; without several sizes there is nothing to see."""
    sizes = {answer.prediction.case.nodes for answer in answers}
    if len(sizes) < 2 or len(answers) > MOST_BARS:
        return
    heading("Throughput (tokens/s, all GPUs)", console)
    top = max(answer.prediction.tokens_per_s for answer in answers)
    names = [label_words(answer) for answer in answers]
    figures = [tokens_words(answer) for answer in answers]
    name_width = min(max(map(len, names)), max(12, console.width // 3))
    width = console.width - name_width - max(map(len, figures)) - 3
    for name, figure, answer in zip(names, figures, answers, strict=True):
        bar = _bar(answer.prediction.tokens_per_s / top, max(4, width))
        console.print(Text(f"{_cut(name, name_width):<{name_width}} {bar} {figure}"))


def _cut(words: str, width: int) -> str:
    return words if len(words) <= width else words[: width - 1] + "…"


def _bar(ratio: float, width: int) -> str:
    eighths = round(ratio * width * 8)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (BARS[rest] if rest else "")


def _print_curve(curve: BandwidthCurve, title: str, console: Console) -> None:
    """Step times over the rate, some of the rates with their figures."""
    heading(f"Step time by bandwidth: {title}", console)
    rates = [show_rate(rate, 2) for rate in curve.rates_gbps]
    times = [show_time(time, 2) for time in curve.step_times_s]
    width = max(map(len, (*rates, *times)))
    columns = max(2, (console.width - len(ROWS[0])) // (width + 1))
    shown = [round(i * (len(rates) - 1) / (columns - 1)) for i in range(columns)]
    for name, words in zip(ROWS, (rates, times), strict=True):
        console.print(Text(name + "".join(f" {words[i]:>{width}}" for i in shown)))
    room = columns * (width + 1) - 1
    console.print(Text(f"{'':<{len(ROWS[0])}} {_heights(curve.step_times_s, room)}"))
    sentence(knee_words(curve), console, "bold")


def _heights(values: Sequence[float], width: int) -> str:
    """The values as heights, by their logarithms, stretched to the width."""
    import math

    low, high = math.log(min(values)), math.log(max(values))
    span = max(high - low, 1e-9)
    picked = (values[min(len(values) - 1, i * len(values) // width)] for i in range(width))
    top = len(HEIGHTS) - 1
    return "".join(HEIGHTS[round((math.log(value) - low) / span * top)] for value in picked)
