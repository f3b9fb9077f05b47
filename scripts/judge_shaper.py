"""Does the judge of shapers judge right? Shapers that are off by a known part, judged many times.

    python scripts/judge_shaper.py [--each 20] [--rate-gbps 1] [--mtu 1500] [--load 'PROGRAM …']

Each round builds a cluster, plants -5 %, 0 and +5 % in turn, and judges each against the nominal
rate as `make measure` does (tests/platforms/emulated/shaper_judge.py). `--load` runs meanwhile, and
is ended. Printed is what was said of each; the exit code is 1 where anything that was said is
wrong, fewer than half of each were judged, or it took more than 15 minutes.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]
INSIDE = CHECKOUT / "tests/platforms/emulated/inside.py"
PLANTED = {0.95: "too slow", 1.0: "right", 1.05: "too fast"}
"""What is to be said of a shaper whose rate is this part of the nominal one."""
LIMIT_S = 900.0
LEAST_JUDGED_RATIO = 0.5


@contextmanager
def running(load: str | None) -> Iterator[None]:
    """A program beside it, with all that it starts."""
    if load is None:
        yield
        return
    child = subprocess.Popen(shlex.split(load), start_new_session=True)
    try:
        yield
        if child.poll() is not None:
            raise SystemExit(f"the load ended early, with {child.returncode}: {load}")
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def judge_round(watch: Path, rate_gbps: float, mtu: int) -> list[dict[str, Any]]:
    """One judgement of each planted shaper."""
    queues = [
        {
            "link": {"rate_gbps": rate_gbps, "mtu": mtu},
            "line_gbps": rate_gbps,
            "planted_ratio": planted,
        }
        for planted in PLANTED
    ]
    paths = os.pathsep.join([str(CHECKOUT / "src"), str(CHECKOUT)])
    ran = subprocess.run(
        [sys.executable, INSIDE, "judge", json.dumps({"watch": str(watch), "queues": queues})],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    found: list[dict[str, Any]] = json.loads(ran.stdout.splitlines()[-1])
    return found


def table_of(found: Sequence[Sequence[dict[str, Any]]]) -> list[str]:
    """A line for each planted shaper: how often what was said of it, and the ratios seen."""
    lines = [
        "planted  rounds  right  too slow  too fast  not judged  wrong  ratios seen      "
        "mean time  longest"
    ]
    for column, planted in enumerate(PLANTED):
        answers = [each[column] for each in found]
        said = Counter(answer["verdict"] for answer in answers)
        ratios = [answer["ratio"] for answer in answers if answer["ratio"] is not None]
        seen = f"{min(ratios):.4f} to {max(ratios):.4f}" if ratios else "-"
        times_s = [answer["seconds"] for answer in answers]
        lines.append(
            f"{planted - 1:+7.0%}  {len(answers):6}  {said['right']:5}  {said['too slow']:8}"
            f"  {said['too fast']:8}  {said[None]:10}  {num_wrong(answers, planted):5}"
            f"  {seen:16} {sum(times_s) / len(times_s):7.1f} s  {max(times_s):5.1f} s"
        )
    return lines


def num_wrong(answers: Sequence[dict[str, Any]], planted: float) -> int:
    """Answers that say something else than was planted."""
    return sum(answer["verdict"] not in (None, PLANTED[planted]) for answer in answers)


def is_good(found: Sequence[Sequence[dict[str, Any]]], took_s: float) -> bool:
    """Nothing wrong, half of each judged, in time?"""
    columns = [[each[column] for each in found] for column in range(len(PLANTED))]
    wrong = sum(map(num_wrong, columns, PLANTED))
    judged = [sum(answer["verdict"] is not None for answer in column) for column in columns]
    return wrong == 0 and min(judged) >= LEAST_JUDGED_RATIO * len(found) and took_s <= LIMIT_S


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=20)
    parser.add_argument("--rate-gbps", type=float, default=1.0)
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--load", help="a program and its arguments, to run meanwhile")
    wanted = parser.parse_args()
    sys.path.insert(0, str(CHECKOUT))
    from tests.machine_watch import watching

    begin_s = time.monotonic()
    found = []
    with running(wanted.load), watching() as watch:
        for number in range(wanted.each):
            found.append(judge_round(watch, wanted.rate_gbps, wanted.mtu))
            said = ", ".join(
                f"{planted - 1:+.0%} {answer['verdict'] or 'not judged: ' + answer['reason']}"
                for planted, answer in zip(PLANTED, found[-1], strict=True)
            )
            print(f"{number + 1}: {said}", flush=True)
    took_s = time.monotonic() - begin_s
    print("\n".join(table_of(found)))
    print(f"{took_s / 60:.1f} minutes of {LIMIT_S / 60:.0f}")
    return not is_good(found, took_s)


if __name__ == "__main__":
    sys.exit(main())
