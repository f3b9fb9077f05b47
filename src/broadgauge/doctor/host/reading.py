"""What is this machine, with nothing secret in it?"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from broadgauge.agent.hardware.reading import read_machine_hardware
from broadgauge.doctor.log.masking import masked_variable
from broadgauge.messages.hardware import HardwareFacts, VariableFacts


def read_hardware(
    root: Path = Path("/"), environ: Mapping[str, str] | None = None
) -> HardwareFacts:
    """Of this process's machine; `root` and `environ` for another one's files.

    Values of variables whose names say that they are secrets are masked, and so are passwords in
    URLs.
    """
    return masked(read_machine_hardware(root, os.environ if environ is None else environ))


def masked(facts: HardwareFacts) -> HardwareFacts:
    """The same without secrets."""
    return replace(facts, variables=tuple(map(_masked_variable, facts.variables)))


def _masked_variable(variable: VariableFacts) -> VariableFacts:
    return replace(variable, value=masked_variable(variable.name, variable.value))
