"""How is the user's command started on a node? Under torchrun, with its own Python."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from broadgauge.messages.pythons import NoSuchPythonError, activated, find_python
from broadgauge.messages.rank import COMMAND_FD_VARIABLE, RESULT_FD_VARIABLE
from broadgauge.messages.tasks import CommandTask, RankLayout
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.trial import RefusedError, Trial

OWN_VARIABLES = (
    COMMAND_FD_VARIABLE,
    RESULT_FD_VARIABLE,
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"),
)
"""Of this process; torchrun sets its ranks' own."""


def torchrun_command(
    layout: RankLayout,
    task: CommandTask,
    identity: RankIdentity,
    log_folder: Path,
    python: str = sys.executable,
) -> list[str]:
    """Which command runs on this node? torchrun with a static rendezvous at node 0, each rank's
    output in a file of its own."""
    return [
        *(python, "-m", "torch.distributed.run"),
        f"--nnodes={layout.nodes}",
        f"--nproc-per-node={layout.ranks_per_node}",
        f"--node-rank={identity.node}",
        f"--master-addr={identity.master_addr}",
        f"--master-port={identity.master_port}",
        f"--log-dir={log_folder}",
        "--redirects=3",
        *task.command,
    ]


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The node's variables without this process's own; output unbuffered, to see it in time."""
    kept = {name: value for name, value in environment.items() if name not in OWN_VARIABLES}
    return kept | {"PYTHONUNBUFFERED": "1"}


def python_and_environment(
    task: CommandTask, variables: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """The interpreter that runs it, and its environment: with `variables`. Raises RefusedError."""
    environment = child_environment(os.environ) | dict(variables)
    if task.python is None:
        return sys.executable, environment
    found = _find_python(task.python, environment)
    return str(found), activated(found, environment)


def _find_python(text: str, environment: Mapping[str, str]) -> Path:
    try:
        return find_python(text, Path.cwd(), environment)
    except NoSuchPythonError as error:
        raise RefusedError(str(error)) from error


def node_ranks(trial: Trial) -> range:
    """Which ranks of the world does this node's torchrun start?"""
    each = trial.layout.ranks_per_node
    return range(trial.identity.node * each, (trial.identity.node + 1) * each)
