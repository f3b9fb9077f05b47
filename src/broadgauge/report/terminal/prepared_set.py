"""What does `broadgauge data` print of a prepared set? Counts, lengths, and how they lie."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from broadgauge.messages.prepared_set import PreparedSet
from broadgauge.report.terminal.tables import heading, indented, sentence
from broadgauge.report.words.printable import printable
from broadgauge.specs.units import show_size
from broadgauge.tokenizing.lengths import Bin, histogram

BAR_WIDTH = 40
NARROWEST_VALUE = 20
"""Columns; where a terminal leaves fewer beside the names, values stand below them."""


def print_prepared(
    folder: Path, described: PreparedSet, counts: Mapping[int, int], console: Console
) -> None:
    """`counts`: samples by length."""
    heading(f"{described.num_samples:,} samples, {described.num_tokens:,} tokens", console)
    rows = dict(_rows(folder, described))
    width = max(map(len, rows))
    for name, value in rows.items():
        _print_row(name, value, width, console)
    for note in described.notes:
        sentence(f"note: {note}", console)
    console.print()
    for line in histogram_lines(histogram(counts)):
        console.print(Text(line), no_wrap=True, overflow="ignore", crop=False)
    console.print()
    # To be copied: a terminal may fold it, no line end stands in it.
    hint = Text(f"in a training: data: {{prepared: {printable(str(folder))}}}", style="dim")
    console.print(hint, no_wrap=True, overflow="ignore", crop=False)


def _rows(folder: Path, described: PreparedSet) -> Iterator[tuple[str, str]]:
    lengths = described.lengths
    yield "source", described.source
    yield "tokenizer", described.tokenizer
    if described.template is not None:
        yield "template", described.template
    yield "vocabulary", f"{described.vocabulary:,} ({described.token_bytes} bytes an id)"
    yield "records", _records(described)
    yield (
        "tokens a sample",
        f"from {lengths.shortest:,} to {lengths.longest:,}, mean {described.mean_length:,.1f}",
    )
    yield (
        "percentiles",
        f"25 %: {lengths.p25:,}, 50 %: {lengths.median:,}, 75 %: {lengths.p75:,}, "
        f"95 %: {lengths.p95:,}, 99 %: {lengths.p99:,} tokens",
    )
    if described.num_counted is not None:
        share_ratio = described.num_counted / described.num_tokens
        words = f"{described.num_counted:,} tokens of assistants ({share_ratio:.1%} of all)"
        yield "loss on", words
    size_bytes = sum(each.size_bytes for each in described.files)
    yield "folder", f"{folder} ({show_size(size_bytes)})"


def _print_row(name: str, value: str, width: int, console: Console) -> None:
    value = printable(value)
    if console.width < width + 2 + NARROWEST_VALUE:
        console.print(name)
        for below in indented(Text(value), console):
            console.print(below)
        return
    first, *rest = indented(Text(value), console, width + 2)
    console.print(Text(f"{name:<{width}}  ").append(first.plain.strip()))
    for more in rest:
        console.print(more)


def _records(described: PreparedSet) -> str:
    left_out = [f"{count:,} left out ({why})" for why, count in described.left_out.items()]
    cut = [f"{described.num_cut:,} cut"] if described.num_cut else []
    return ", ".join([f"{described.num_records:,} read", *left_out, *cut])


def histogram_lines(bins: Sequence[Bin]) -> list[str]:
    """A bar a bin, as long as its share of the fullest; a bin with any samples has a mark."""
    most = max(each.num_samples for each in bins)
    names = [f"{each.shortest:,} – {each.longest:,}" for each in bins]
    width = max(map(len, names))
    return [
        f"{name:>{width}}  {_bar(each.num_samples / most):<{BAR_WIDTH}}  {each.num_samples:,}"
        for name, each in zip(names, bins, strict=True)
    ]


def _bar(share_ratio: float) -> str:
    """In eighths of a column."""
    eighths = round(share_ratio * BAR_WIDTH * 8)
    if share_ratio and not eighths:
        eighths = 1
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
