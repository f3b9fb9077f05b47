"""What is known of a case that another program measured, elsewhere?"""

from typing import Literal

from pydantic import Field

from broadgauge.specs.base import Name, Spec

ImportedProgram = Literal["nccl-tests", "iperf3", "fio", "nccl-inspector"]
IMPORTED = "imported"
"""The platform of an imported run, in its environments."""
NO_LABEL = "imported"
"""Stands where the network's name does when the user gave none."""


class Imported(Spec):
    """Where a case's figures are from. Its network is whatever was there: the file names none."""

    program: ImportedProgram
    label: Name = NO_LABEL
    """In tables, in the place of the network's name: `roce` of `roce=FILE`."""
    settings: dict[str, str] = Field(default_factory=dict)
    """How it was measured, as the file says it: two cases that differ here are two cases."""
