"""Is an operator that ends while it comes up started again, and not for ever?"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.cluster.operator_facts import TRAINER
from tests.kubernetes.cluster.operators import Operators, Ports
from tests.kubernetes.cluster.processes import Process, ProcessEndedError


class Restarted(Operators):
    """Of a cluster that is not there: a program that ends some times before it stays."""

    def __init__(self, folder: Path, ends: int) -> None:
        self.folder, self.left, self.launches = folder, ends, 0

    def _launch(self, operator: Any) -> tuple[Process, Ports]:
        self.launches += 1
        code = "raise SystemExit(1)" if self.left > 0 else "import time; time.sleep(60)"
        self.left -= 1
        log = self.folder / "log"
        log.touch()
        popen = subprocess.Popen([sys.executable, "-c", code])
        self.process = Process(name=operator.name, popen=popen, log=log)
        return self.process, Ports(webhook=1, health=2)

    def end(self, name: str) -> None:
        self.process.end(kill=True)

    def begin(self) -> None:
        process, ports = self._launch(TRAINER)

        def is_ready(*_: object) -> bool:
            return self.left < 0 and self.process.popen.poll() is None

        self._wait_until_ready(TRAINER, process, ports, is_ready)


@pytest.mark.parametrize("ends", [0, 1, 2])
def test_it_comes_up_in_the_end(tmp_path: Path, ends: int) -> None:
    operators = Restarted(tmp_path, ends)
    operators.begin()
    assert operators.launches == ends + 1
    operators.end("")


def test_one_that_ends_each_time_is_an_error(tmp_path: Path) -> None:
    operators = Restarted(tmp_path, 9)
    with pytest.raises(ProcessEndedError, match="ended with 1"):
        operators.begin()
    assert operators.launches == 3
