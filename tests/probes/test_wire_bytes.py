"""Are the bytes on the wire those that Gloo is known to send, the barriers' taken off?"""

import json
import shutil
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.measuring,
    pytest.mark.namespaces,
    pytest.mark.skipif(not (shutil.which("unshare") and shutil.which("ip")), reason="no unshare"),
]


@pytest.mark.measured
def test_two_gloo_ranks_send_what_is_known(repository):
    """all_reduce and all_gather the ring's bytes; reduce_scatter 1.0 S instead of 0.5 S, which is
    twice the ring's. A message of 1 KiB costs a few packets' headers more, not a barrier's."""
    result = subprocess.run(
        ["unshare", "-rn", sys.executable, "-m", "tests.probes.loopback_trial"],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    rows = {(row["op"], row["size_bytes"]): row for row in json.loads(result.stdout)}
    for op, ratio in (("all_reduce", 1), ("all_gather", 1), ("reduce_scatter", 2)):
        large = rows[op, 2**20]
        assert large["amplification_ratio"] == pytest.approx(ratio, rel=0.03)
        small = rows[op, 1024]
        assert small["wire_bytes"] < ratio * 1024 + 2000
