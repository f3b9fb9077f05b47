r"""Two machines with sshd while a command runs, to try `platform: hosts` where there are none?

    python scripts/two_hosts.py -- broadgauge run tests/platforms/hosts/beside_emulated.yaml
    python scripts/two_hosts.py --rates '500 Mbit/s' -- \
        python scripts/aa_runs.py FOLDER --platform hosts

For the command `ssh node0` and `ssh node1` are two nodes as the emulated platform makes them, each
with the cores that an emulated node would have, joined by `eth0`, `eth1`, … of these rates. An
experiment names them `hosts: [node0, node1]`; their `python3` is the one that runs this. When the
command ends they are gone, and what it left on them is said. Needs root, sshd and ssh.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from pydantic import TypeAdapter

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT / "src"), str(CHECKOUT)]

from tests.platforms.hosts.alike import like_emulated  # noqa: E402  found by the line above
from tests.platforms.hosts.rig import Beside, RigPlan, run_beside  # noqa: E402

from broadgauge.specs.units import RateGbps  # noqa: E402

RATES = "200 Mbit/s, 1 Gbit/s, unshaped"
_RATE: TypeAdapter[float] = TypeAdapter(RateGbps)


def parse_rates_gbps(text: str) -> tuple[float | None, ...]:
    """`200 Mbit/s, unshaped` → (0.2, None). Raises ValueError."""
    words = [word.strip() for word in text.split(",")]
    return tuple(None if word == "unshaped" else _RATE.validate_python(word) for word in words)


def run(rates_gbps: tuple[float | None, ...], command: list[str]) -> int:
    """The command's exit code, or 128 and the number of the signal that ended it."""
    sources = [str(CHECKOUT / "src"), str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sources)}
    with tempfile.TemporaryDirectory(prefix="two-hosts-") as folder:
        plan = RigPlan(folder=folder, **like_emulated(rates_gbps))
        beside = run_beside(plan, command, env=environment)
        code = _wait(beside)
        if (Path(folder) / "report").is_file():
            _say_what_is_left(beside)
    return code


def _wait(beside: Beside) -> int:
    """Ctrl-C is the command's: the machines are there until it has ended."""
    while True:
        try:
            return beside.process.wait()
        except KeyboardInterrupt:
            continue


def _say_what_is_left(beside: Beside) -> None:
    report = beside.report()
    for line in report.processes:
        print(f"left running: {line}", file=sys.stderr)
    for name, paths in report.files.items():
        for path in paths:
            print(f"left on {name}: {path}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rates", type=parse_rates_gbps, default=RATES, help=f"[{RATES}]")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="after `--`")
    options = parser.parse_args()
    return run(options.rates, options.command)


if __name__ == "__main__":
    sys.exit(main())
