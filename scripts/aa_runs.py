r"""How often is "different" said where nothing differs? Interleaved A/A comparisons on a platform.

    python scripts/aa_runs.py FOLDER [--platform local] [--comparisons 15] [--for-s 240]
    python scripts/two_hosts.py --rates '500 Mbit/s' -- \
        python scripts/aa_runs.py FOLDER --platform hosts
    python scripts/aa_runs.py FOLDER --experiment yours.yaml

Each comparison is a whole run of an experiment `--against` its own stored run: both arms are the
same cases, launched again and interleaved block by block, and each headline metric is compared as
`broadgauge compare` does. By construction a 95 % interval leaves out the truth in 5 % of all
comparisons, so in 5 % "different" is said. The last column says how likely as many or more would
be by that alone (one-sided binomial test). Metrics of one run share its disturbances: the line of
all of them together takes them for independent, which they are not quite.

FOLDER keeps every run. Run again, it goes on where it stopped.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pieces import (
    Pieces,
    broadgauge,
    commit_of,
    cores_line,
    emptied,
    machine_line,
    only_run,
    when,
)

from broadgauge.results.comparing.arms import arms_compared
from broadgauge.results.comparing.gate import gate
from broadgauge.results.model import RunSummary
from broadgauge.results.statistics import ComparisonVerdict
from broadgauge.results.summary import summarise_stored

CHECKOUT = Path(__file__).parents[1]
SOURCE = CHECKOUT / "src"
EXPECTED_RATIO = 0.05
LIMIT_RATIO = 0.03
"""Of the gate (`--fail-above 3%`), which is asked, too."""
EXPERIMENT = """\
name: a-a
description: Two equal arms
platform: {platform}
cluster: {{device: cpu, shapes: [{shape}]}}
{networks}
workloads:
  - kind: collectives
    ops: [all_reduce]
    sizes: [1 KiB, 2 MiB]
    budget_s: 100 ms
    min_iterations: 5
  - kind: train
    model: {{layers: 2, hidden: 128, heads: 4, seq_len: 64}}
    batch_per_rank: 1
    steps: 12
    warm_up_steps: 2
    communication_off: false
launches: 5
"""
SHAPES = {"emulated": "2x1", "local": "1x2", "hosts": "2x1"}
NETWORKS = {
    "emulated": "networks: [{name: link, rate_gbps: 500 Mbit/s}]",
    "local": "",
    "hosts": "hosts: [node0, node1]\nnetworks: [{name: link, found: {interface: eth0}}]",
}
"""Hosts are those of scripts/two_hosts.py."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What all comparisons said of one metric of one case."""

    what: str
    num_compared: int
    num_higher: int
    """Called different, the second arm above the first."""
    num_lower: int
    spread_ratio: float
    """Standard deviation of the log-ratios."""

    @property
    def num_different(self) -> int:
        return self.num_higher + self.num_lower

    @property
    def p_value(self) -> float:
        return binomial_tail(self.num_different, self.num_compared, EXPECTED_RATIO)


def binomial_tail(at_least: int, number: int, probability: float) -> float:
    """How likely are so many or more of a number of independent tries?"""
    return math.fsum(
        math.comb(number, k) * probability**k * (1 - probability) ** (number - k)
        for k in range(at_least, number + 1)
    )


def compare_once(folder: Path, number: int) -> dict[str, Any]:
    """One run against the stored one; what it says of every metric."""
    runs = emptied(folder / "runs" / str(number))
    broadgauge(
        SOURCE,
        [
            *("run", str(folder / "experiment.yaml"), "--set", f"seed={number}"),
            *("--against", str(only_run(folder / "baseline")), "--runs-folder", str(runs)),
        ],
    )
    return {"commit": commit_of(CHECKOUT), **what_is_said(summarise_stored(only_run(runs)))}


def what_is_said(run: RunSummary) -> dict[str, Any]:
    """By case and metric: the ratio of the arms and its verdict; and the gate's outcome."""
    rows = [
        {
            "what": f"{row.b_label}: {row.metric}",
            "ratio": row.comparison.ratio.value,
            "low": row.comparison.ratio.low,
            "high": row.comparison.ratio.high,
            "is_different": row.comparison.verdict is ComparisonVerdict.DIFFERENT,
        }
        for row in arms_compared(run)
        if row.comparison is not None
    ]
    num_failed = sum(case.num_failed for case in run.cases)
    return {"rows": rows, "gate": str(gate(run, LIMIT_RATIO).outcome), "num_failed": num_failed}


def experiment_on(platform: str) -> str:
    """The small one."""
    return EXPERIMENT.format(platform=platform, shape=SHAPES[platform], networks=NETWORKS[platform])


def prepare(folder: Path, options: argparse.Namespace) -> None:
    """The experiment, and a run of one launch to be compared against."""
    experiment = folder / "experiment.yaml"
    if not experiment.is_file():
        text = experiment_on(options.platform)
        experiment.write_text(options.experiment.read_text() if options.experiment else text)
    if not (folder / "baseline").exists():
        runs = ["--runs-folder", str(folder / "baseline")]
        broadgauge(SOURCE, ["run", str(experiment), "--set", "launches=1", *runs])


def counted(pieces: Sequence[Mapping[str, Any]]) -> list[Said]:
    """By case and metric, in the order of the runs."""
    rows: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for piece in pieces:
        for row in piece["rows"]:
            rows[row["what"]].append(row)
    return [_said(what, of) for what, of in rows.items()]


def _said(what: str, rows: Sequence[Mapping[str, Any]]) -> Said:
    different = [row["ratio"] for row in rows if row["is_different"]]
    logs = [math.log(row["ratio"]) for row in rows]
    middle = math.fsum(logs) / len(logs)
    squares = math.fsum((each - middle) ** 2 for each in logs)
    return Said(
        what=what,
        num_compared=len(rows),
        num_higher=sum(ratio > 1 for ratio in different),
        num_lower=sum(ratio < 1 for ratio in different),
        spread_ratio=math.sqrt(squares / max(len(logs) - 1, 1)),
    )


def together(said: Sequence[Said]) -> Said:
    return Said(
        what="all of these",
        num_compared=sum(each.num_compared for each in said),
        num_higher=sum(each.num_higher for each in said),
        num_lower=sum(each.num_lower for each in said),
        spread_ratio=max(each.spread_ratio for each in said),
    )


def show(pieces: list[dict[str, Any]]) -> None:
    """The table, as docs/measurements.md has it."""
    commits = " and ".join(dict.fromkeys(piece["commit"] for piece in pieces))
    print(f"{when(pieces)}; {machine_line()}; commit {commits}; {cores_line(pieces)}")
    said = counted(pieces)
    print("| case and metric | compared | different (higher, lower) | ratios' spread | p |")
    print("| --- | --- | --- | --- | --- |")
    for each in (*said, together(said)):
        share = each.num_different / each.num_compared
        print(
            f"| {each.what} | {each.num_compared} | {each.num_different}, {share:.1%} "
            f"({each.num_higher}, {each.num_lower}) | {each.spread_ratio:.2%} "
            f"| {each.p_value:.2f} |"
        )
    gates = [piece["gate"] for piece in pieces]
    counts = ", ".join(f"{gates.count(each)} {each}" for each in sorted(set(gates)))
    print(f"`--fail-above 3%` would have said: {counts}")
    num_failed = sum(piece["num_failed"] for piece in pieces)
    if num_failed:
        print(f"{num_failed} trials failed")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--platform", choices=sorted(SHAPES), default="emulated")
    parser.add_argument("--experiment", type=Path, help="instead of the small one for a platform")
    parser.add_argument("--comparisons", type=int, default=15, help="in all; 0: only the table")
    parser.add_argument("--for-s", type=float, default=math.inf, help="of this piece")
    return parser.parse_args()


def main() -> None:
    options = parse()
    pieces = Pieces(options.folder)
    if options.comparisons:
        prepare(options.folder, options)
        pieces.run(
            options.comparisons, options.for_s, lambda number: compare_once(options.folder, number)
        )
    if found := pieces.read():
        show(found)


if __name__ == "__main__":
    main()
