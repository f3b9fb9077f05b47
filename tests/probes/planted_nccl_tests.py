"""A worker that runs engine nccl-tests on CPUs too, where only the fake of its programs can run."""

import sys

from broadgauge.probes import worker
from broadgauge.probes.nccl_tests import probe


def refuse_nothing(*_: object) -> None:
    """The fake needs no GPUs."""


if __name__ == "__main__":
    probe.refuse_elsewhere = refuse_nothing
    sys.exit(worker.main())
