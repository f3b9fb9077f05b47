"""Broadgauge measures how much of your GPUs' time the network takes.

For notebooks and scripts (docs/python.md):

    run, resume, open_run, list_runs       experiments and what they measured
    compare                                two runs, or the networks of one
    sensitivity, whatif                    what the link's rate decides; another network
    doctor                                 is RDMA on, and why is a job slow, stuck or dead?
    predict                                other clusters
    calibrate, predict_here                this machine
    load_catalog                           what is known of GPUs, networks, models, prices
    Run, Table                             what the functions give
    BroadgaugeError ◀ InputError, PlatformError, RunFolderError

Importing the package loads none of it: each name is imported when it is first used. This file goes
to the hosts of a run too, with agents and probes, so it needs Python 3.10 and nothing else.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broadgauge.api.calibrating import calibrate
    from broadgauge.api.catalog import load_catalog
    from broadgauge.api.comparing import compare
    from broadgauge.api.doctor import doctor
    from broadgauge.api.here import predict_here
    from broadgauge.api.open_run import list_runs, open_run
    from broadgauge.api.predicting import predict
    from broadgauge.api.run_and_resume import resume, run
    from broadgauge.api.sensitivity import sensitivity
    from broadgauge.api.stored_run import Run
    from broadgauge.api.table import Table
    from broadgauge.api.whatif import whatif
    from broadgauge.specs.errors import (
        BroadgaugeError,
        InputError,
        PlatformError,
        RunFolderError,
    )

__version__ = "0.1.0"
__all__ = [
    "BroadgaugeError",
    "InputError",
    "PlatformError",
    "Run",
    "RunFolderError",
    "Table",
    "__version__",
    "calibrate",
    "compare",
    "doctor",
    "list_runs",
    "load_catalog",
    "open_run",
    "predict",
    "predict_here",
    "resume",
    "run",
    "sensitivity",
    "whatif",
]

_MODULES = {
    "BroadgaugeError": "specs.errors",
    "InputError": "specs.errors",
    "PlatformError": "specs.errors",
    "Run": "api.stored_run",
    "RunFolderError": "specs.errors",
    "Table": "api.table",
    "calibrate": "api.calibrating",
    "compare": "api.comparing",
    "doctor": "api.doctor",
    "list_runs": "api.open_run",
    "load_catalog": "api.catalog",
    "open_run": "api.open_run",
    "predict": "api.predicting",
    "predict_here": "api.here",
    "resume": "api.run_and_resume",
    "run": "api.run_and_resume",
    "sensitivity": "api.sensitivity",
    "whatif": "api.whatif",
}
"""Where each name is defined; `__all__` and the imports for type checkers say the same."""


if not TYPE_CHECKING:  # which would take it for every name

    def __getattr__(name: str) -> object:
        """A public name, imported now."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Keeps `broadgauge.predict` and `broadgauge.doctor` the functions: rooms have the same names,
    and Python sets them as attributes here when any module of them is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
