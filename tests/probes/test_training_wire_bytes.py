"""Are the bytes on the wire of a training those that Gloo sends for the collectives it says?"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from broadgauge.specs.model_messages import fsdp_units

from .loopback_training import MODEL, WAYS

pytestmark = [
    pytest.mark.measured,
    pytest.mark.measuring,
    pytest.mark.namespaces,
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("unshare") and shutil.which("ip")), reason="no unshare"),
]
ALL_BYTES = 4 * MODEL.parameters
FREED_BYTES = 2 * ALL_BYTES - 4 * fsdp_units(MODEL)[-1]
WIRE_BYTES = {
    "ddp": ALL_BYTES,
    "ddp, bfloat16": ALL_BYTES / 2,
    "ddp, accumulated": ALL_BYTES,
    "fsdp": FREED_BYTES / 2 + ALL_BYTES,
    "fsdp, bfloat16": FREED_BYTES / 2 + ALL_BYTES / 2,
    "fsdp, keeping": ALL_BYTES / 2 + ALL_BYTES,
}
"""Two ranks: S for all_reduce, S/2 for all_gather, and S for reduce_scatter, where a ring sends
S/2: Gloo's is a whole all_reduce (catalog/traffic.py)."""
RING_BYTES = {
    name: wire_bytes - ALL_BYTES / (4 if "bfloat16" in name else 2) * name.startswith("fsdp")
    for name, wire_bytes in WIRE_BYTES.items()
}


@pytest.fixture(scope="module")
def found():
    result = subprocess.run(
        ["unshare", "-rn", sys.executable, "-m", "tests.probes.loopback_training"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("way", WAYS)
def test_two_gloo_ranks_send_what_the_step_says(found, way):
    assert found[way]["wire_bytes"] == pytest.approx(WIRE_BYTES[way], rel=0.05)
    expected = WIRE_BYTES[way] / RING_BYTES[way]
    assert found[way]["amplification_ratio"] == pytest.approx(expected, rel=0.05)
