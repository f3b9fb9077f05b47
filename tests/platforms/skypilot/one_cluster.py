"""The product's own way through one cluster, without ssh: up, a leader that measures, down again.

    python -m tests.platforms.skypilot.one_cluster RUN_FOLDER MEASURES_S

Started as a process, so that it can be killed at any step. `measuring` is written into the folder
of the stand-in where a run would have its leader, which lives on without the tool.
"""

import os
import sys
import time
from pathlib import Path

from tests.manifests.skypilot.experiments import experiment_of
from tests.platforms.skypilot import stand_in

from broadgauge.manifests.skypilot.clusters import ClusterKey
from broadgauge.platforms.skypilot.cluster import CloudRun, bring_down, bring_up
from broadgauge.platforms.skypilot.ledger import Ledger
from broadgauge.specs.experiment import Experiment

KEY = ClusterKey(nodes=2, network_tier="best")


def cloud_run(folder: Path, experiment: Experiment | None = None) -> CloudRun:
    """Of a run in this folder."""
    return CloudRun(
        experiment=experiment or experiment_of(idle_minutes=1, max_cost_usd=80, secrets=["KEY"]),
        base_folder=folder,
        logs=folder / "logs",
        ledger=Ledger(folder / "logs"),
        run="abc123",
        clean=lambda text: text.replace("very secret", "***"),
    )


def main(folder: Path, measures_s: float) -> None:
    around = cloud_run(folder)
    cluster = None
    try:
        cluster = bring_up(around, KEY, say=_say, show=_say)
        state = Path(os.environ[stand_in.FOLDER])
        (state / "leader").write_text(str(int((time.time() + measures_s) * 1000)))
        (state / "measuring").touch()
        time.sleep(measures_s)
    finally:
        if cluster is not None and cluster.following is not None:
            cluster.following.end()
        for held in around.ledger.open:
            bring_down(around, held, _say)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
