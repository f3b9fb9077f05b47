"""Trains on two ranks over this network namespace's loopback, one way after another, and prints
the metrics of each. Run in a namespace of its own, as loopback_trial.py.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from broadgauge.specs.workload import GptModel

from .harness import Ranks
from .loopback_trial import half_of_loopback
from .training_launch import Launch

MODEL = GptModel(layers=2, hidden=256, heads=4, seq_len=16)
"""6.6 MB of gradients: headers and barriers are little beside them."""
WAYS: dict[str, dict[str, object]] = {
    "ddp": {},
    "ddp, bfloat16": {"gradient_dtype": "bfloat16"},
    "ddp, accumulated": {"accumulation": 3},
    "fsdp": {"strategy": "fsdp"},
    "fsdp, bfloat16": {"strategy": "fsdp", "gradient_dtype": "bfloat16"},
    "fsdp, keeping": {"strategy": "fsdp", "reshard_after_forward": False, "accumulation": 3},
}


def main() -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    found = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        Ranks(2, Path(folder), counters=half_of_loopback) as ranks,
    ):
        launch = Launch(ranks)
        for name, changes in WAYS.items():
            sizes = {"model": MODEL, "steps": 4, "block_steps": 2, "bucket_cap_bytes": None}
            found[name] = launch.train(**sizes, **changes).measurement.metrics
        sys.stderr.write(ranks.logs())
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
