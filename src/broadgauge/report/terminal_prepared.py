"""What does `broadgauge data` print of a prepared set? Counts, lengths, and how they lie."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from broadgauge.messages.codec import encode
from broadgauge.messages.prepared_set import PreparedSet
from broadgauge.report.terminal_tables import heading, indented, sentence
from broadgauge.specs.units import show_size
from broadgauge.tokenizing.lengths import Bin, histogram

FORMAT = "broadgauge prepared set"
BAR_WIDTH = 40
NARROWEST_VALUE = 20
"""Columns; where a terminal leaves fewer beside the names, values stand below them."""


def print_prepared(
    folder: Path, described: PreparedSet, counts: Mapping[int, int], console: Console
) -> None:
    """`counts`: samples by length."""
    heading(f"{described.num_samples:,} samples, {described.num_tokens:,} tokens", console)
    size_bytes = sum(each.size_bytes for each in described.files)
    lengths = described.lengths
    rows = {
        "source": described.source,
        "tokenizer": described.tokenizer,
        "template": described.template,
        "vocabulary": f"{described.vocabulary:,} ({described.token_bytes} bytes an id)",
        "records": _records(described),
        "tokens a sample": f"mean {mean_tokens(described):,.1f}, median {lengths.median:,}, 95 % "
        f"have at most {lengths.p95:,}, from {lengths.shortest:,} to {lengths.longest:,}",
        "loss on": _loss_on(described),
        "folder": f"{folder} ({show_size(size_bytes)})",
    }
    width = max(map(len, rows))
    for name, value in rows.items():
        if value is not None and console.width < width + 2 + NARROWEST_VALUE:
            console.print(name)
            for below in indented(Text(value), console):
                console.print(below)
        elif value is not None:
            first, *rest = indented(Text(value), console, width + 2)
            console.print(Text(f"{name:<{width}}  ").append(first.plain.strip()))
            for more in rest:
                console.print(more)
    for note in described.notes:
        sentence(f"note: {note}", console)
    console.print()
    for line in histogram_lines(histogram(counts)):
        console.print(Text(line), no_wrap=True, overflow="ignore", crop=False)
    console.print()
    # To be copied: a terminal may fold it, no line end stands in it.
    hint = Text(f"In a training: data: {{prepared: {folder}}}", style="dim")
    console.print(hint, no_wrap=True, overflow="ignore", crop=False)


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


def mean_tokens(described: PreparedSet) -> float:
    return described.num_tokens / described.num_samples


def _loss_on(described: PreparedSet) -> str | None:
    if described.num_counted is None:
        return None
    share_ratio = described.num_counted / described.num_tokens
    return f"{described.num_counted:,} tokens of assistants ({share_ratio:.1%} of all)"


def _records(described: PreparedSet) -> str:
    left_out = [f"{count:,} left out ({why})" for why, count in described.left_out.items()]
    cut = [f"{described.num_cut:,} cut"] if described.num_cut else []
    return ", ".join([f"{described.num_records:,} read", *left_out, *cut])


def prepared_json(
    folder: Path, described: PreparedSet, counts: Mapping[int, int], *, was_there: bool
) -> str:
    """One object: set.json, where it lies, and the distribution of lengths."""
    lengths: dict[str, Any] = {"count": described.num_samples, "mean": mean_tokens(described)}
    found = {
        "document": FORMAT,
        "folder": str(folder),
        "was_there": was_there,
        **encode(described),
        "lengths": {**lengths, **encode(described.lengths)},
        "histogram": [
            {"shortest": each.shortest, "longest": each.longest, "samples": each.num_samples}
            for each in histogram(counts)
        ],
    }
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"
