"""Can this be calibrated, and may the system file be written? Asked before anything is measured."""

import os
from pathlib import Path

from broadgauge.predict.system.file import read_system
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.case import Device
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.machine import MachineFacts

DEVICES = ("auto", "cpu", "cuda")


def device_asked(wanted: str, machine: MachineFacts) -> Device:
    """Raises InputError."""
    if wanted not in DEVICES:
        hint = did_you_mean(wanted, DEVICES) or f"one of {', '.join(DEVICES)}"
        raise InputError(f"no device to calibrate is called {wanted!r}", hint=hint)
    if machine.torch is None:
        raise InputError(
            "measuring needs torch, which is not installed here",
            hint="pip install 'broadgauge[torch]'",
        )
    if wanted == "cuda" and not machine.gpus:
        raise InputError("--device cuda: no GPU was found here", hint="--device cpu")
    return "cuda" if wanted != "cpu" and machine.gpus else "cpu"


def check_replaceable(path: Path, machine: MachineFacts) -> None:
    """Anything but an older file of this machine is kept. Raises InputError, before measuring."""
    if not path.exists():
        if not path.parent.is_dir():
            raise InputError(f"--output: there is no folder {path.parent}")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise InputError(f"--output: {path.parent} may not be written")
        return
    hint = "name another file with --output"
    try:
        older = read_system(path)
    except InputError:
        raise InputError(f"`{path}` is there, is no system file, and is kept", hint=hint) from None
    if older.machine.hostname != machine.hostname:
        whose = f"`{path}` is of the machine {older.machine.hostname}, and is kept"
        raise InputError(whose, hint=hint)
