"""What does `broadgauge advise` print? The choice, what decided it, the others, the interval."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from broadgauge.advise.storage.choosing import (
    Alternative,
    StorageAdvice,
    alternatives,
    other_reading,
)
from broadgauge.advise.storage.constraints import lost_at_most_s
from broadgauge.advise.storage.placement import StoragePlacement
from broadgauge.predict.storage.checkpoint_interval import (
    LostShare,
    best_interval_s,
    is_first_order,
    lost_share,
)
from broadgauge.report.storage_words import (
    PHASES,
    READINGS,
    constraint_words,
    excluded_words,
    names_words,
    spent_words,
    wait_words,
)
from broadgauge.report.terminal_tables import heading, indented, print_table, sentence
from broadgauge.specs.storage_table import StoragePhase
from broadgauge.specs.units import show_count, show_ratio

HEAD = ("phase", "storage", "once", "times", "in all")
OTHERS_HEAD = ("phase", "storage", "once", "more in all", "excluded by")
INTERVALS_S = (600.0, 1800.0, 3600.0, 7200.0, 14_400.0)
"""Those that people use; an hour is the article's."""
INTERVAL_HEAD = ("a save every", "saving", "failures", "together")


def print_advice(advice: StorageAdvice, title: str, console: Console) -> None:
    """All of it."""
    sentence(title, console, "bold")
    console.print()
    chosen = advice.chosen
    if chosen is None:
        _print_nothing(advice, console)
        return
    print_table(HEAD, list(_rows(chosen)), console)
    for line in _sums(advice, chosen):
        sentence(line, console)
    _items("What decided it", list(_deciding(advice)), console)
    rows = [_other(p, each, advice) for p in StoragePhase for each in alternatives(advice, p)]
    if rows:
        heading("With another storage in one phase", console)
        print_table(OTHERS_HEAD, rows, console)
    _print_intervals(advice, chosen, console)
    notes = [*_unknown(advice), *([advice.table.note] if advice.table.note else [])]
    for note in notes:
        sentence(f"note: {note}", console, "dim")


def _print_nothing(advice: StorageAdvice, console: Console) -> None:
    lacking = [
        PHASES[p] for p in StoragePhase if len(advice.unknown[p]) == len(advice.table.storages)
    ]
    if lacking:
        sentence(f"No choice: no storage has a figure of {' and '.join(lacking)}.", console)
        return
    sentence("No choice meets all needs.", console)
    for title, excluding in (
        ("Without one of these there would be one", advice.excluding),
        ("Only without all of these there would be one", advice.excluding_together),
    ):
        words = [constraint_words(each, advice.table) for each in sorted(excluding)]
        _items(title, words, console)


def _rows(chosen: StoragePlacement) -> Iterator[tuple[str, ...]]:
    for wait in chosen.waits:
        yield (
            PHASES[wait.phase],
            wait.storage.name,
            wait_words(wait.once_s),
            show_count(wait.times_count),
            wait_words(wait.total_s),
        )


def _sums(advice: StorageAdvice, chosen: StoragePlacement) -> Iterator[str]:
    table = advice.table
    yield f"Training waits {spent_words(chosen.total_s, table)}."
    if chosen.price_usd_per_hour:
        yield f"The storages cost ${chosen.price_usd_per_hour:g} an hour."
    lost_s = lost_at_most_s(chosen, table)
    if lost_s is not None:
        yield f"A node that is lost at the worst moment costs {wait_words(lost_s)} of training."
    if advice.now is None and table.now.names():
        missing = [PHASES[phase] for phase in StoragePhase if _has_no_figure_now(advice, phase)]
        yield f"What is used now is not compared: {' and '.join(missing)} is not known of it."
    if advice.now is not None and advice.now != chosen:
        saved_s = advice.now.total_s - chosen.total_s
        verb = "saves" if saved_s >= 0 else "costs"
        against = names_words(advice.now)
        yield f"Beside what is used now ({against}) it {verb} {spent_words(abs(saved_s), table)}."


def _has_no_figure_now(advice: StorageAdvice, phase: StoragePhase) -> bool:
    name = advice.table.now.names().get(phase)
    return name is None or name in advice.unknown[phase]


def _deciding(advice: StorageAdvice) -> Iterator[str]:
    for price in advice.prices:
        words = constraint_words(price.constraint, advice.table)
        costs = wait_words(price.price_s)
        yield f"{words}: it costs {costs}; without it {names_words(price.without)}"
    if not advice.prices:
        yield "no need excludes anything faster"
    if advice.other_reading is not None:
        reading = other_reading(advice.table.needs.resume_from)
        more_s = advice.other_reading.total_s - (advice.chosen or advice.other_reading).total_s
        yield (
            f"if {READINGS[reading]} (`resume_from: {reading}`): "
            f"{names_words(advice.other_reading)}, {_signed(more_s)}"
        )


def _other(phase: StoragePhase, other: Alternative, advice: StorageAdvice) -> tuple[str, ...]:
    wait = other.placement.of(phase)
    excluded = "\n".join(excluded_words(each, advice.table) for each in sorted(other.violated))
    more = _signed(other.more_s)
    return (PHASES[phase], wait.storage.name, wait_words(wait.once_s), more, excluded or "–")


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{wait_words(abs(seconds))}"


def _print_intervals(advice: StorageAdvice, chosen: StoragePlacement, console: Console) -> None:
    """What a checkpoint interval costs with the chosen storages."""
    job = advice.table.job
    stall_s = chosen.of(StoragePhase.CHECKPOINT_SAVING).once_s
    if stall_s == 0:
        return
    heading("Checkpoint interval", console)
    failures_s = job.mean_time_between_failures_s
    best_s = None if failures_s is None else best_interval_s(stall_s, failures_s)
    intervals_s = sorted({*INTERVALS_S, *([] if best_s is None else [best_s])})
    rows = []
    for interval_s in intervals_s:
        share = lost_share(
            interval_s,
            stall_s=stall_s,
            durable_s=chosen.of(StoragePhase.CHECKPOINT_SAVING).storage.time_to_durable_s,
            load_s=chosen.of(StoragePhase.MODEL_LOADING).once_s,
            mean_time_between_failures_s=failures_s,
        )
        rows.append(_interval_row(share, is_best=interval_s == best_s))
    print_table(INTERVAL_HEAD, rows, console)
    for line in _interval_notes(stall_s, failures_s):
        sentence(line, console)


def _interval_row(share: LostShare, *, is_best: bool) -> tuple[str, ...]:
    failing = share.failing_ratio
    return (
        wait_words(share.interval_s) + (" (least)" if is_best else ""),
        show_ratio(share.saving_ratio),
        "unknown" if failing is None else show_ratio(failing),
        "unknown" if failing is None else show_ratio(share.ratio),
    )


def _interval_notes(stall_s: float, failures_s: float | None) -> Iterator[str]:
    if failures_s is None:
        yield (
            "Which interval is best depends on how often nodes fail: "
            "`job.mean_time_between_failures_s`."
        )
    elif not is_first_order(stall_s, failures_s):
        yield "A save takes more than a tenth of the time between failures: no interval is good."


def _unknown(advice: StorageAdvice) -> Iterator[str]:
    for phase, names in advice.unknown.items():
        if names:
            yield f"{', '.join(names)}: {PHASES[phase]} is not known, so it can't be chosen for it"
    if advice.chosen is not None:
        data = advice.chosen.of(StoragePhase.BATCH_LOADING).storage
        if data.batch_cache == "unknown":
            yield f"whether {data.name} was read from memory for its batches is unknown"
        saves = advice.chosen.of(StoragePhase.CHECKPOINT_SAVING).storage
        if saves.time_to_durable_s is None:
            yield f"how long after a save's begin {saves.name} is durable is unknown"


def _items(title: str, lines: list[str], console: Console) -> None:
    if not lines:
        return
    heading(title, console)
    for line in lines:
        first, *rest = indented(Text(line), console)
        console.print(Text("- ").append_text(Text(first.plain.strip())))
        for more in rest:
            console.print(more)
