"""Measures collectives of two ranks over this network namespace's loopback, and prints the rows.

Run in a namespace of its own (`unshare -rn`), where nothing else sends: `lo` sends what both nodes
would, so each node's counters are half of its.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.merging.outcomes import make_case

from broadgauge.merging.merge import merge
from broadgauge.specs.launching import NodeCounters
from broadgauge.specs.workload import CollectivesWorkload

from .harness import Ranks, made_up_counters


def half_of_loopback(reading: int) -> NodeCounters:
    lines = Path("/proc/net/dev").read_text().splitlines()
    fields = next(line for line in lines if line.strip().startswith("lo:")).split()
    half = int(fields[9]) // 2
    made_up = made_up_counters(reading)
    return NodeCounters(
        tx_bytes=half,
        rx_bytes=half,
        drops_count=0,
        retransmits_count=0,
        cores_count=made_up.cores_count,
        cpu_user_s=made_up.cpu_user_s,
        cpu_system_s=made_up.cpu_system_s,
        cpu_softirq_s=made_up.cpu_softirq_s,
    )


def main() -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    workload = CollectivesWorkload(
        kind="collectives", sizes=(1024, 2**20), min_iterations=20, max_iterations=50
    )
    case = make_case(workload)
    with (
        tempfile.TemporaryDirectory() as folder,
        Ranks(2, Path(folder), counters=half_of_loopback) as ranks,
    ):
        outcome = ranks.run_trial(case)
        sys.stderr.write(ranks.logs())
    rows = merge(case, outcome, None).measurement.collectives
    json.dump([row.model_dump(mode="json") for row in rows], sys.stdout)


if __name__ == "__main__":
    main()
