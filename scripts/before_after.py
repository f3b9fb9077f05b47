"""Did anything get slower from one version to the next? Two checkouts, their runs interleaved.

    python scripts/before_after.py FOLDER --before CHECKOUT [--after CHECKOUT] [--pairs 15]
        [--for-s 240] [--gpu | --experiment FILE]

A pair is one whole run of the same experiment by each version, in turns first (A B, B A, …), with
this interpreter and this machine's packages. Compared are, pair by pair, with a 95 % interval:

step time         of each training, from records.jsonl; at most 1 % slower is allowed
start to hello    from the run's folder being there to the first launch's ranks having said hello
between launches  from the last trial of a launch to the first of the next: ranks end and start
command           from its start to its end; and less its trials: importing, planning, starting,
                  ending, the tables; at most 5 % slower is allowed of each of these four
all_reduce, CPU   mean time of a collective, and the command's CPU time: shown only

Needs nothing but what Broadgauge itself needs: `PYTHONPATH=src python3 scripts/before_after.py …`.
FOLDER keeps every run. Run again, it goes on where it stopped.
"""

import argparse
import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pieces import (
    Pieces,
    Took,
    broadgauge,
    commit_of,
    cores_line,
    emptied,
    machine_line,
    only_run,
    when,
)

from broadgauge.results.statistics import LaunchPair, compare_paired, mean_of_launches

CHECKOUT = Path(__file__).parents[1]
STEP_BOUND_RATIO = 0.01
LAUNCH_BOUND_RATIO = 0.05
OF_LAUNCHES = ("start to hello", "between launches", "command, less its trials", "command")
SIDES = ("before", "after")
EXPERIMENT = """\
name: before-after
description: The same by two versions
platform: emulated
cluster: {device: cpu, shapes: [2x1]}
networks:
  - {name: shaped, rate_gbps: 200 Mbit/s}
  - {name: unshaped}
workloads:
  - kind: collectives
    ops: [all_reduce]
    sizes: [1 KiB, 4 MiB]
    budget_s: 100 ms
    min_iterations: 5
  - kind: train
    model: {layers: 2, hidden: 128, heads: 4, seq_len: 64}
    batch_per_rank: 1
    steps: 12
    warm_up_steps: 2
    communication_off: false
launches: 2
"""
GPU_EXPERIMENT = """\
name: before-after
description: The same by two versions
platform: emulated
cluster: {device: cuda, shapes: [2x1]}
networks:
  - {name: shaped, rate_gbps: 10 Gbit/s, mtu_bytes: 9000}
workloads:
  - kind: collectives
    ops: [all_reduce]
    sizes: [1 KiB, 64 MiB]
    budget_s: 500 ms
    min_iterations: 5
  - kind: train
    model: {layers: 8, hidden: 1024, heads: 16, seq_len: 512, vocabulary: 32000}
    batch_per_rank: 4
    dtype: bfloat16
    steps: 20
    warm_up_steps: 4
    communication_off: false
launches: 2
"""


def run_pair(folder: Path, sources: Mapping[str, Path], number: int) -> dict[str, Any]:
    """One run of each version; which was first, and what was measured of both."""
    order = SIDES if number % 2 == 0 else SIDES[::-1]
    runs = emptied(folder / "runs" / str(number))
    commits = " to ".join(commit_of(sources[side].parent) for side in SIDES)
    found: dict[str, Any] = {"first": order[0], "commits": commits}
    for side in order:
        command = ["run", str(folder / "experiment.yaml"), "--set", f"seed={number}"]
        took = broadgauge(sources[side], [*command, "--runs-folder", str(runs / side)])
        found[side] = measured(only_run(runs / side), took)
    return found


def measured(run: Path, took: Took) -> dict[str, list[float]]:
    """Seconds of everything that is compared, by its name: one value a launch, or one a command."""
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    bad = [record["record_id"] for record in records if record["status"] != "ok"]
    if bad:
        raise SystemExit(f"{run}: {', '.join(bad)} failed")
    records.sort(key=lambda record: record["started_unix_s"])
    trials_s = math.fsum(each["ended_unix_s"] - each["started_unix_s"] for each in records)
    hello_unix_s = min(path.stat().st_mtime for path in (run / "environments").iterdir())
    found: dict[str, list[float]] = defaultdict(list)
    for record in records:
        case = f"{record['workload']} {record['shape']} {record['network']}"
        for name, value_s in _times_of(record["metrics"], record["collectives"]):
            found[f"{name}, {case}"].append(value_s)
    found["start to hello"].append(hello_unix_s - (run / "plan.json").stat().st_mtime)
    for earlier, later in itertools.pairwise(records):
        if earlier["launch_id"] != later["launch_id"]:
            pause_s = later["started_unix_s"] - earlier["ended_unix_s"]
            found["between launches"].append(pause_s)
    found["command, less its trials"].append(took.wall_s - trials_s)
    found["command"].append(took.wall_s)
    found["command's CPU time"].append(took.cpu_s)
    return dict(found)


def _times_of(
    metrics: Mapping[str, float | None], collectives: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, float]]:
    step_time_s = metrics.get("step_time_s")
    if step_time_s is not None:
        yield "step time", step_time_s
    for row in collectives:
        yield f"{row['op']} of {row['size_bytes']} bytes", row["time_s"]


def bound_of(name: str) -> float | None:
    """How much slower may it be? None: it is shown only."""
    if name.startswith("step time"):
        return STEP_BOUND_RATIO
    return LAUNCH_BOUND_RATIO if name in OF_LAUNCHES else None


def show(pieces: list[dict[str, Any]]) -> bool:
    """The table, as docs/measurements.md has it; is anything slower than its bound?"""
    commits = " and ".join(dict.fromkeys(piece["commits"] for piece in pieces))
    print(f"{when(pieces)}; {machine_line()}; commits {commits}; {cores_line(pieces)}")
    print("| time of | before | after | after / before (95 %) | allowed | |")
    print("| --- | --- | --- | --- | --- | --- |")
    verdicts = [_show_row(name, pieces) for name in pieces[0]["before"]]
    return "slower" in verdicts


def _show_row(name: str, pieces: Sequence[Mapping[str, Any]]) -> str:
    pairs = [
        LaunchPair(
            a_values=piece["before"][name],
            b_values=piece["after"][name],
            a_middle_s=0.0 if piece["first"] == "before" else 1.0,
            b_middle_s=1.0 if piece["first"] == "before" else 0.0,
        )
        for piece in pieces
    ]
    before, after = (
        mean_of_launches([piece[side][name] for piece in pieces]).value for side in SIDES
    )
    ratio = compare_paired(pairs).ratio
    bound = bound_of(name)
    interval = "" if ratio.low is None else f" ({ratio.low:.4f} to {ratio.high:.4f})"
    allowed = "" if bound is None else f"{1 + bound:.2f}"
    said = verdict(ratio.low, ratio.high, bound)
    print(
        f"| {name} | {before:.4g} s | {after:.4g} s | {ratio.value:.4f}{interval} "
        f"| {allowed} | {said} |"
    )
    return said


def verdict(low: float | None, high: float | None, bound_ratio: float | None) -> str:
    """By where the interval lies; empty where nothing is allowed or forbidden."""
    if bound_ratio is None:
        return ""
    if low is None or high is None:
        return "can't tell"
    if high <= 1 + bound_ratio:
        return "within"
    return "slower" if low > 1 + bound_ratio else "can't tell"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--before", type=Path, required=True, help="a checkout, or a folder with its src"
    )
    parser.add_argument("--after", type=Path, default=CHECKOUT)
    parser.add_argument("--experiment", type=Path, help="instead of the small one on CPUs")
    parser.add_argument("--gpu", action="store_true", help="two GPUs, as two nodes over NCCL")
    parser.add_argument("--pairs", type=int, default=15, help="in all; 0: only the table")
    parser.add_argument("--for-s", type=float, default=math.inf, help="of this piece")
    return parser.parse_args()


def main() -> int:
    options = parse()
    sources = {side: getattr(options, side).absolute() / "src" for side in SIDES}
    pieces = Pieces(options.folder)
    experiment = options.folder / "experiment.yaml"
    if not experiment.is_file():
        text = GPU_EXPERIMENT if options.gpu else EXPERIMENT
        experiment.write_text(options.experiment.read_text() if options.experiment else text)
    pieces.run(
        options.pairs, options.for_s, lambda number: run_pair(options.folder, sources, number)
    )
    found = pieces.read()
    return int(bool(found) and show(found))


if __name__ == "__main__":
    raise SystemExit(main())
