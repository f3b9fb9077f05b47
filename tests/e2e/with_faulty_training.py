"""The command with trainings whose rank 1 fails in a step: `with_faulty_training.py FAULT run …`.

All else is as installed; started with `worker FAULT` it is such a rank itself.
"""

import functools
import os
import sys
import time

FAULT_STEP = 4


def plant(fault: str) -> None:
    from broadgauge.probes.training import trainer

    step = trainer.Trainer.step

    def faulty_step(self, index):
        if index == FAULT_STEP and os.environ["RANK"] == "1":
            if fault == "hang":
                time.sleep(1e6)
            raise KeyError("labels")
        return step(self, index)

    trainer.Trainer.step = faulty_step


if sys.argv[1] == "worker":
    from broadgauge.probes import worker

    plant(sys.argv[2])
    sys.exit(worker.main())
else:
    from broadgauge.cli.main import entry_point
    from broadgauge.platforms import emulated_cluster, local
    from broadgauge.platforms.launch_plan import Programs

    faulty = (sys.executable, __file__, "worker", sys.argv.pop(1))
    for platform in (emulated_cluster, local):
        setattr(platform, "Programs", functools.partial(Programs, worker=faulty))  # noqa: B010
    entry_point()
