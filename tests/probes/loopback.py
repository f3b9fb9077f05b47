"""Measures collectives and trains over this network namespace's loopback, and prints what was said.

Run in a namespace of its own (`unshare -rn`), where nothing else sends: `lo` sends what all nodes
would, so each node's counters are its part of it. One program does all, so that torch is imported
once.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, get_args

from tests.merging.outcomes import make_case

from broadgauge.merging.merge import merge
from broadgauge.specs.launching import NodeCounters
from broadgauge.specs.workloads.workload import CollectiveOp, CollectivesWorkload, GptModel

from .harness import Counters, Ranks, made_up_counters
from .training_launch import Launch

OPS = {2: get_args(CollectiveOp), 4: ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")}
"""By ranks. Of four, those to which each rank gives as much as the others."""
SIZES = (1024, 2**20)
MODEL = GptModel(layers=2, hidden=256, heads=4, seq_len=16)
"""6.6 MB of gradients: headers and barriers are little beside them."""
NUM_STEPS = 4
WAYS: dict[str, dict[str, object]] = {
    "ddp": {},
    "ddp, bfloat16": {"gradient_dtype": "bfloat16"},
    "ddp, accumulated": {"accumulation": 3},
    "fsdp": {"strategy": "fsdp"},
    "fsdp, bfloat16": {"strategy": "fsdp", "gradient_dtype": "bfloat16"},
    "fsdp, keeping": {"strategy": "fsdp", "reshard_after_forward": False, "accumulation": 3},
}


def part_of_loopback(num_nodes: int) -> Counters:
    """Each node's counters: as many bytes as the others', and all the retransmits there were."""

    def read(reading: int) -> NodeCounters:
        sent = sent_bytes() // num_nodes
        made_up = made_up_counters(reading)
        return NodeCounters(
            tx_bytes=sent,
            rx_bytes=sent,
            drops_count=0,
            retransmits_count=num_retransmits(),
            cores_count=made_up.cores_count,
            cpu_user_s=made_up.cpu_user_s,
            cpu_system_s=made_up.cpu_system_s,
            cpu_softirq_s=made_up.cpu_softirq_s,
        )

    return read


def sent_bytes() -> int:
    lines = Path("/proc/net/dev").read_text().splitlines()
    return int(next(line for line in lines if line.strip().startswith("lo:")).split()[9])


def num_retransmits() -> int:
    lines = Path("/proc/net/snmp").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])


def collectives(num_ranks: int, folder: Path) -> dict[str, Any]:
    workload = CollectivesWorkload(
        kind="collectives",
        ops=OPS[num_ranks],
        sizes=SIZES,
        min_iterations=20,
        max_iterations=20,
    )
    case = make_case(workload, nodes=num_ranks)
    with Ranks(num_ranks, folder, counters=part_of_loopback(num_ranks)) as ranks:
        outcome = ranks.run_trial(case)
        sys.stderr.write(ranks.logs())
    measured = merge(case, outcome, None).measurement
    return {
        "rows": [row.model_dump(mode="json") for row in measured.collectives],
        "num_retransmits": measured.metrics["retransmits_count"] / num_ranks,
    }


def trainings(folder: Path) -> dict[str, Any]:
    """The metrics of each way."""
    found = {}
    with Ranks(2, folder, counters=part_of_loopback(2)) as ranks:
        launch = Launch(ranks)
        for name, changes in WAYS.items():
            sizes = {"model": MODEL, "steps": NUM_STEPS, "block_steps": 2, "bucket_cap_bytes": None}
            found[name] = launch.train(**sizes, **changes).measurement.metrics
        sys.stderr.write(ranks.logs())
    return found


def main() -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {
            "collectives": {str(number): collectives(number, folder) for number in OPS},
            "trainings": trainings(folder),
        }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
