"""What can one device do? Measured in processes of its own."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from broadgauge.agent.cores import share_out
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.running.calibration.experiment import model_data
from broadgauge.running.limit_factor import refuse_wrong_factor
from broadgauge.specs.case import Device
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.machines.machine import MachineFacts
from broadgauge.specs.machines.system import Compute

CHILD = (sys.executable, "-P", "-m", "broadgauge.probes.calibration")
MOST_CHILD_S = waiting_limit_s(600)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredDevice:
    """What the children said, the slower of ranks that worked side by side."""

    compute: Compute
    threads: int
    ranks: int
    """Side by side."""
    software: dict[str, Any]
    """What a rank says of its versions: `torch`, `cuda`."""
    notes: tuple[str, ...]


def measure_device(
    machine: MachineFacts, device: Device, tell: Callable[[str], object]
) -> MeasuredDevice:
    """One GPU; or on cores two ranks side by side, each on its half, as two nodes compute.

    `tell` is given what is being measured, in words. Raises LaunchError where a child ends badly.
    """
    refuse_wrong_factor()
    ranks = 1 if device == "cuda" or len(machine.cores) < 2 else 2
    cores, _ = share_out(machine.cores, ranks, len(machine.cores) // ranks)
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(_Child(device, own)) for own in cores]
        tells = (tell, *[_untold] * (ranks - 1))
        said = [_last_line(child, each) for child, each in zip(children, tells, strict=True)]
    computes = [compute_of(each["compute"]) for each in said]
    return MeasuredDevice(
        compute=computes[0] if len(computes) == 1 else slower(computes),
        threads=int(said[0]["threads"]),
        ranks=ranks,
        software={name: said[0].get(name) for name in ("torch", "cuda")},
        notes=tuple(dict.fromkeys(note for each in said for note in each["notes"])),
    )


def compute_of(said: dict[str, Any]) -> Compute:
    """What a process measured, as its last line has it."""
    steps = [{**step, "model": model_data(step["model"])} for step in said["steps"]]
    return Compute.model_validate({**said, "steps": steps})


class _Child:
    """One process that measures. It ends when this is left, and when nobody reads it any more."""

    def __init__(self, device: Device, cores: Sequence[int]) -> None:
        self._read_end, write_end = os.pipe()
        variables = os.environ | {"OMP_NUM_THREADS": str(len(cores)), "PYTHONUNBUFFERED": "1"}
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed in __exit__

        self.process = subprocess.Popen(
            [*CHILD, device, str(write_end), ",".join(map(str, cores))],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            pass_fds=(write_end,),
        )
        os.close(write_end)

    def __enter__(self) -> "_Child":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()
        os.close(self._read_end)

    def lines(self) -> Iterator[dict[str, Any]]:
        with os.fdopen(os.dup(self._read_end)) as lines:
            for line in lines:
                yield json.loads(line)

    def last_words(self) -> str:
        self.log.seek(0)
        lines = [line.strip() for line in self.log if line.strip()]
        return lines[-1] if lines else "it said nothing"


def _untold(what: str) -> None:
    """The first child's words stand for all."""
    del what


def _last_line(child: _Child, tell: Callable[[str], object]) -> dict[str, Any]:
    """The child's result. Raises LaunchError."""
    last: dict[str, Any] = {}
    before = ""
    for last in child.lines():
        what = str(last.get("doing", "")).partition(",")[0]
        if what and what != before:
            tell(what)
        before = what or before
    code = child.process.wait(MOST_CHILD_S)
    if code != 0 or "compute" not in last:
        raise LaunchError(
            f"measuring the device ended with exit code {code}: {child.last_words()}",
            hint="is the device free? `broadgauge run quickstart` shows whether ranks can run",
        )
    return last


def slower(computes: Sequence[Compute]) -> Compute:
    """Of each timing the one with the larger median: a step waits for its slowest rank."""
    forms = [compute.model_dump() for compute in computes]
    try:
        return Compute.model_validate(_slower(forms))
    except ValidationError as error:
        message = f"ranks side by side measured different things: {error}"
        raise LaunchError(message) from error


def _slower(forms: Sequence[Any]) -> Any:
    first = forms[0]
    if isinstance(first, dict):
        if "median_s" in first:
            return max(forms, key=lambda form: form["median_s"])
        return {key: _slower([form[key] for form in forms]) for key in first}
    if isinstance(first, (list, tuple)):
        return [_slower(items) for items in zip(*forms, strict=False)]
    return first
