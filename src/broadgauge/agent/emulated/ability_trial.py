"""What happens when this process tries to build two emulated nodes?

Run as `python -m broadgauge.agent.emulated.ability_trial`: it prints one line of JSON, and
the kernel takes everything it built away with it.
"""

import os
import sys

from broadgauge.agent.emulated.ability import AbilityTrial, trial_to_json
from broadgauge.agent.emulated.errors import EmulationError
from broadgauge.agent.emulated.namespaces import (
    enter_cluster_namespaces,
    needs_user_namespace,
    prepare_cluster_root,
)
from broadgauge.agent.emulated.nodes import EmulatedCluster, build_cluster
from broadgauge.agent.emulated.shaping import LinkPlan

_RATE_GBPS = 40.0
"""5 GB/s: above the 4 GB/s that 32-bit rates reach."""


def try_everything(*, as_root: bool) -> AbilityTrial:
    """Build two shaped nodes in this process, which is spent afterwards."""
    has_htb = False
    try:
        prepare_cluster_root()
        cluster = build_cluster(2, LinkPlan(rate_gbps=None, mtu=9000))
        cluster.shape(LinkPlan(rate_gbps=_RATE_GBPS, mtu=1500))
        has_htb = True
        for node in cluster.nodes:
            node.read_counters()
    except EmulationError as error:
        return AbilityTrial(
            as_root=as_root,
            has_htb=has_htb,
            step=error.step,
            detail=error.detail,
            error_number=error.error_number,
        )
    return AbilityTrial(
        as_root=as_root,
        has_htb=has_htb,
        has_netem=_has_netem(cluster),
        has_own_sysfs=not any("/sys" in warning for warning in cluster.warnings),
        congestion_control=cluster.congestion_control,
    )


def _has_netem(cluster: EmulatedCluster) -> bool:
    """Does the kernel take a netem qdisc? Tried on lo of the cluster's own namespace."""
    from pyroute2.netlink.exceptions import NetlinkError

    netlink = cluster.nodes[0].nics[0].ingress.netlink
    try:
        netlink.tc("add", "netem", 1, 0x10000, delay=1000)
    except NetlinkError:
        return False
    return True


def main() -> int:
    """Enter the namespaces, let a child be PID 1 and pass its report on."""
    as_root = not needs_user_namespace()
    try:
        enter_cluster_namespaces()
    except EmulationError as error:
        trial = AbilityTrial(
            as_root=as_root, step=error.step, detail=error.detail, error_number=error.error_number
        )
        sys.stdout.write(trial_to_json(trial) + "\n")
        return 0
    pid = os.fork()
    if pid == 0:
        sys.stdout.write(trial_to_json(try_everything(as_root=as_root)) + "\n")
        sys.stdout.flush()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
