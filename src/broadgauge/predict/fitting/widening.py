"""By how much must an interval be wider where few have measured anything of the kind?

`python -m broadgauge.predict.fitting.widening references/measured-training.csv
references/further-training.csv` writes catalog/widenings.yaml. Constants are fitted on the first
table; the second has what that has little of (FP8, tensor parallelism with shards, experts).

Each row is predicted with constants and residuals that its source is not in. How many times what
kernels make of its interval's half would hold it? The ratio of a kind holds 80 % of its rows, a
source of n rows counting as √n of them. One source alone does not tell what the next one does: its
kind has the most of any of its rows, and no less than the widest of the other kinds.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from broadgauge.catalog.compiling import write_copies
from broadgauge.predict.costs.compute import compute_costs
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.knowledge import default_knowledge
from broadgauge.predict.fitting.residuals import weighted_quantiles
from broadgauge.predict.fitting.sample import LEFT_OUT_FLAG
from broadgauge.predict.intervals.uncertainty import intervals
from broadgauge.predict.intervals.unfamiliar import KIND_WORDS, kinds_of
from broadgauge.predict.tables.table import StepRow, read_table
from broadgauge.predict.timeline.evaluation import evaluate

HELD_SHARE = 0.8
FIGURES = 3
"""Significant figures kept, so that a rerun on another machine gives the same file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A row, and what its interval would have to be to hold it."""

    source: str
    kinds: frozenset[str]
    """What few have measured of it."""
    ratio: float
    """Of what kernels make of half of it (`Widenings.added`); 1: it is wide enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRatio:
    """What an entry of widenings.yaml says."""

    ratio: float
    rows: int
    without: Mapping[str, float]
    """By source, in the tables' order."""


def missed(rows: Sequence[StepRow]) -> list[Missed]:
    """All rows that constants could be fitted on, by source, as if nothing were unfamiliar."""
    used = [row for row in rows if LEFT_OUT_FLAG not in row.flags]
    found: list[Missed] = []
    for source in dict.fromkeys(row.source for row in used):
        mine = [row for row in used if row.source == source]
        knowledge = replace(default_knowledge().without(source), widenings={})
        columns = columns_of([row.case for row in mine], knowledge)
        compute = compute_costs(columns, knowledge)
        evaluation = evaluate(columns, compute)
        sides = intervals(columns, compute, evaluation, knowledge)
        log = np.log(np.array([row.step_time_s for row in mine]) / evaluation.step_s)
        is_above = log > 0
        usual = np.log(np.where(is_above, sides.high_s, sides.low_s) / evaluation.step_s)
        kernels = np.where(is_above, sides.kernels_above_log, sides.kernels_below_log)
        ratios = np.sqrt(1 + np.maximum(0.0, log**2 - usual**2) / kernels**2)
        flags = kinds_of(columns)
        for index, ratio in enumerate(ratios.tolist()):
            kinds = frozenset(kind for kind, flag in flags.items() if flag[index])
            found.append(Missed(source=source, kinds=kinds, ratio=ratio))
    return found


def kind_ratios(rows: Sequence[Missed]) -> dict[str, KindRatio]:
    """An entry a kind that has rows."""
    found: dict[str, KindRatio] = {}
    for kind in KIND_WORDS:
        mine = [row for row in rows if kind in row.kinds]
        if not mine:
            continue
        sources = dict.fromkeys(row.source for row in mine)
        found[kind] = KindRatio(
            ratio=_rounded(_ratio_of(rows, kind)),
            rows=len(mine),
            without={
                source: _rounded(_ratio_of([row for row in rows if row.source != source], kind))
                for source in sources
            },
        )
    return found


def _ratio_of(rows: Sequence[Missed], kind: str) -> float:
    """What these rows say of a kind; of fewer than two sources, the widest of any kind."""
    mine = [row for row in rows if kind in row.kinds]
    if len({row.source for row in mine}) > 1:
        return _held_ratio(mine)
    own = max((row.ratio for row in mine), default=1.0)
    others = ([row for row in rows if each in row.kinds] for each in KIND_WORDS if each != kind)
    return max(own, 1.0, *(_held_ratio(each) for each in others if each))


def _held_ratio(rows: Sequence[Missed]) -> float:
    """What eight in ten of these rows stay within."""
    ratios = np.array([row.ratio for row in rows])
    sources = np.array([row.source for row in rows])
    (held,) = weighted_quantiles(ratios, sources, (HELD_SHARE,))
    return max(1.0, held)


def _rounded(ratio: float) -> float:
    return float(f"{ratio:.{FIGURES}g}")


def yaml_text(found: Mapping[str, KindRatio]) -> str:
    """As it stands in the catalog."""
    lines = [
        "# Generated by `python -m broadgauge.predict.fitting.widening",
        "# references/measured-training.csv references/further-training.csv`.",
        "# Kinds of trainings that few have measured, and how many times what kernels make of half",
        "# an interval holds eight in ten rows of that kind; `without_ratio`: for scoring each.",
        "widenings:",
    ]
    for kind, each in found.items():
        names = ", ".join(f'"{source}"' for source in each.without)
        lines.append(f"  - name: {kind}")
        lines.append(f'    note: "{KIND_WORDS[kind]}"')
        lines.append(f"    fitted_on: [{names}]")
        lines.append(f"    width_ratio: {each.ratio}")
        lines.append(f"    rows: {each.rows}")
        lines.append("    without_ratio:")
        lines.extend(f'      "{source}": {ratio}' for source, ratio in each.without.items())
    return "\n".join(lines) + "\n"


def read_rows(paths: Sequence[str]) -> list[StepRow]:
    """Of several tables. Raises InputError."""
    tables = [read_table(Path(path).read_bytes(), path) for path in paths]
    return [row for table in tables for row in table.rows]


def main(arguments: Sequence[str]) -> None:
    """Writes catalog/widenings.yaml beside this package."""
    found = kind_ratios(missed(read_rows(arguments)))
    target = Path(__file__).parents[2] / "catalog" / "widenings.yaml"
    target.write_text(yaml_text(found), encoding="utf-8")
    write_copies(target.parent / "compiled")


if __name__ == "__main__":
    main(sys.argv[1:])
