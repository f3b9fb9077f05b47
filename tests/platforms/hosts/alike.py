"""How are two machines made as like the nodes of the emulated platform as they can be?

Their links are shaped by the same code, and each has the cores that an emulated node would have.
What they have beside their ranks is what a host has: sshd, the agent, and node 0 the leader, on the
same cores. Their home folder is their own, so that no profile of this machine's user is read and
`python3` is the one of these tests.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.platforms.hosts.rig import TEMPORARY

from broadgauge.agent.cores import cores_by_neighbourhood, share_out

EXPERIMENT = Path(__file__).with_name("beside_emulated.yaml")
RATES_GBPS = (0.2, 1.0, None)
"""Of the networks in it, `eth0` and on."""
NUM_NODES = 2


def like_emulated(rates_gbps: Sequence[float | None] = RATES_GBPS) -> dict[str, Any]:
    """A plan's fields but its folder."""
    cores = cores_by_neighbourhood()
    each, _ = share_out(cores, NUM_NODES, max(1, len(cores) // NUM_NODES))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.defpath, "/usr/sbin", "/sbin"])
    return {
        "num_nodes": NUM_NODES,
        "rate_gbps": rates_gbps[0],
        "more_rates_gbps": tuple(rates_gbps[1:]),
        "cores": each,
        "environment": {"HOME": TEMPORARY, "PATH": path},
    }
