"""Are the bytes on the wire those that Gloo is known to send, of collectives and of trainings?

At least what is known, and at most 1.05 times that and what was sent again: that is counted, too.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.bytes_on_wire import assert_explained

from broadgauge.catalog.traffic import gloo_node_bytes, ring_node_bytes
from broadgauge.specs.workloads.model_messages import fsdp_units

from .loopback import MODEL, NUM_STEPS, OPS, SIZES, WAYS

pytestmark = [
    pytest.mark.measuring,
    pytest.mark.namespaces,
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("unshare") and shutil.which("ip")), reason="no unshare"),
]
SEGMENT_BYTES = 65_536 + 14
"""The longest that loopback has."""
ONE_WAY = {"broadcast": 1 / 2, "reduce": 3 / 4}
"""Of two ranks: the mean of both nodes' bytes, by those of the busier one."""
ALL_BYTES = 4 * MODEL.parameters
FREED_BYTES = 2 * ALL_BYTES - 4 * fsdp_units(MODEL)[-1]
TRAINING_BYTES = {
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
    for name, wire_bytes in TRAINING_BYTES.items()
}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    result = subprocess.run(
        ["unshare", "-rn", sys.executable, "-m", "tests.probes.loopback"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("num_ranks", OPS)
def test_gloo_ranks_send_what_is_known_of_each_op(found: dict[str, Any], num_ranks: int) -> None:
    """A message of 1 KiB costs a few packets' headers more, not a barrier's."""
    said = found["collectives"][str(num_ranks)]
    small, _ = SIZES
    rows = {(row["op"], row["size_bytes"]): row for row in said["rows"]}
    assert rows.keys() == {(op, size) for op in OPS[num_ranks] for size in SIZES}
    for (op, size), row in rows.items():
        known = gloo_node_bytes(op, num_ranks, size) * ONE_WAY.get(op, 1)
        num_retransmits = said["num_retransmits"] / row["iterations"]
        if size == small:
            headers = 1000 * num_ranks + num_retransmits * SEGMENT_BYTES
            assert row["wire_bytes"] <= known + headers, op
        else:
            assert_explained(
                row["wire_bytes"],
                known,
                num_retransmits=num_retransmits,
                segment_bytes=SEGMENT_BYTES,
                where=op,
            )
        ring = ring_node_bytes(op, num_ranks, size)
        assert row["amplification_ratio"] == pytest.approx(row["wire_bytes"] / ring)
        assert row["is_correct"]


@pytest.mark.parametrize("way", WAYS)
def test_two_gloo_ranks_send_what_the_step_says(found: dict[str, Any], way: str) -> None:
    measured, known = found["trainings"][way], TRAINING_BYTES[way]
    assert_explained(
        measured["wire_bytes"],
        known,
        num_retransmits=measured["retransmits_count"] / 2 / NUM_STEPS,
        segment_bytes=SEGMENT_BYTES,
    )
    ratio = measured["wire_bytes"] / RING_BYTES[way]
    assert measured["amplification_ratio"] == pytest.approx(ratio)
