"""What Python's examples run on here: ranks without torch that make up what they measure, and a
machine that was calibrated before. All else is as installed."""

import functools
import sys
from pathlib import Path
from typing import Any

from tests.predict.making_systems import system

from broadgauge.api import calibrating
from broadgauge.platforms import emulated_cluster, local
from broadgauge.platforms.launch_plan import Programs

WORKER = (sys.executable, str(Path(__file__).parents[1] / "e2e" / "scripted_worker.py"))


def _programs() -> Any:
    return functools.partial(Programs, worker=WORKER)


def _measured(*_: object, **__: object) -> Any:
    return system(has_steps=True)


def stand_ins() -> list[tuple[object, str, Any]]:
    """Where, under which name, and what: for `setattr`, or for pytest's monkeypatch."""
    return [
        (emulated_cluster, "Programs", _programs()),
        (local, "Programs", _programs()),
        (calibrating, "measure", _measured),
    ]
