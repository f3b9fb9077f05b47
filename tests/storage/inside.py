"""How do the storage tests come into a cluster with storages? Run as `inside.py JSON`.

It takes the supervisor's place: makes the storages' part outside, enters the namespaces, forks PID
1, builds nodes and storages there and takes the steps that it is told, one after the other: a case
of in_node.py on a node, as a rank is, or a signal to all processes of a name.
"""

import json
import os
import signal
import subprocess
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from broadgauge.agent.emulated.namespaces import (
    drop_privileges_for_rank,
    enter_cluster_namespaces,
    prepare_cluster_root,
)
from broadgauge.agent.emulated.nodes import EmulatedCluster, build_cluster
from broadgauge.agent.emulated.shaping import LinkPlan
from broadgauge.agent.emulated.storage.build import Logs, build_storages, hosts_of, new_keys
from broadgauge.agent.emulated.storage.host_part import HostPart, host_part
from broadgauge.agent.emulated.storage.throttle import join_group
from broadgauge.messages.emulated_storage import StoragePlan

IN_NODE = Path(__file__).with_name("in_node.py")
REAL_IDS = (os.getuid(), os.getgid())


def first_process(asked: dict[str, Any], plans: tuple[StoragePlan, ...], host: HostPart) -> int:
    """PID 1 of the cluster; the exit code of the last program."""
    prepare_cluster_root()
    link = LinkPlan(rate_gbps=None, mtu=1500)
    cluster = build_cluster(asked["nodes"], link, more_hosts=hosts_of(plans))
    keys = new_keys()
    logs = Logs(folder=Path(asked["logs"]), launch_id="test")
    build_storages(cluster, plans, host, logs, keys)
    for step in asked["steps"]:
        if "signal" in step:
            send_signal(step["to"], signal.Signals[step["signal"]])
            continue
        code = run_on_node(cluster, host, step.pop("node", 0), step, keys)
        if code:
            return code
    return 0


def run_on_node(
    cluster: EmulatedCluster, host: HostPart, node: int, case: dict[str, Any], keys: dict[str, str]
) -> int:
    def become() -> None:
        if host.groups:
            join_group(host.groups[node])
        cluster.nodes[node].enter()
        drop_privileges_for_rank(*REAL_IDS)

    sys.stdout.flush()
    command = [sys.executable, str(IN_NODE), json.dumps(case)]
    return subprocess.run(command, env=os.environ | keys, preexec_fn=become, check=False).returncode


def send_signal(name: str, number: signal.Signals) -> None:
    """To all processes of this program in the cluster: /proc is its own."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == name:
                os.kill(int(entry.name), number)


def main() -> int:
    """The exit code."""
    asked = json.loads(sys.argv[1])
    plans = tuple(StoragePlan(**plan) for plan in asked["plans"])
    with host_part(plans, asked["nodes"]) as host:
        assert host is not None
        enter_cluster_namespaces()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = first_process(asked, plans, host)
            except BaseException:  # noqa: BLE001  the last frame of a forked child
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
