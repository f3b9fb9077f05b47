"""Can a disk be throttled by the user who runs the tests? Some machines and users can't."""

import os
from pathlib import Path

import pytest

from broadgauge.probes.storage.throttle import throttled
from broadgauge.probes.trial import RefusedError

RATES = {"read_byte_per_s": 500_000_000, "write_byte_per_s": 200_000_000}


def skip_unless_throttled(folder: Path) -> None:
    """Skips, with the reason, where the disk of this folder can't be."""
    try:
        with throttled(folder, f"try-{os.getpid()}", **RATES):
            return
    except RefusedError as error:
        pytest.skip(f"a disk {error}")
