"""What is a program in a pod started with? Options of its manifest, and variables of its own pod.

All pods of a job run the same command; which node a pod is its job says in a variable.
"""

import argparse
import signal
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path

NODE_VARIABLES = ("JOB_COMPLETION_INDEX", "PET_NODE_RANK", "RANK")
"""By which a job numbers its pods. Source: Kubernetes, "Job completion index" (of a Job, by itself
and in a TrainJob); training-operator 1.9, the environment of a PyTorchJob's pods, of which older
ones set RANK alone."""
TOKEN_VARIABLE = "BROADGAUGE_TOKEN"
POD_NAME_VARIABLE = "BROADGAUGE_POD_NAME"
NODE_NAME_VARIABLE = "BROADGAUGE_NODE_NAME"
POD_IP_VARIABLE = "BROADGAUGE_POD_IP"
WRONG_START = 2
"""Exit code: a wrong command."""


class NoPlaceError(ValueError):
    """The pod was not started as the manifest says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlace:
    """Which pod of a run is this?"""

    node: int
    """Its number in the job."""
    pod_name: str
    node_name: str
    """Of the cluster's node that it is on."""
    address: str
    """On the pod network."""
    token: str = field(repr=False)
    """By which the pods of a run know each other."""


def node_of(variables: Mapping[str, str], num_nodes: int) -> int:
    """Raises NoPlaceError where the job does not say it."""
    if num_nodes == 1:
        return 0
    for name in NODE_VARIABLES:
        text = variables.get(name, "")
        if text.isdecimal() and int(text) < num_nodes:
            return int(text)
    raise NoPlaceError(
        f"which of {num_nodes} nodes is this pod? {' or '.join(NODE_VARIABLES)} does not say it"
    )


def take_place(variables: MutableMapping[str, str], num_nodes: int) -> PodPlace:
    """The token is taken out of the variables, which others inherit. Raises NoPlaceError."""
    token = variables.pop(TOKEN_VARIABLE, "")
    if not token:
        raise NoPlaceError(f"the variable {TOKEN_VARIABLE} is not set: is this a pod of a run?")
    address = variables.get(POD_IP_VARIABLE, "")
    if not address:
        raise NoPlaceError(f"the variable {POD_IP_VARIABLE} is not set: this pod has no address")
    return PodPlace(
        node=node_of(variables, num_nodes),
        pod_name=variables.get(POD_NAME_VARIABLE) or variables.get("HOSTNAME") or "unknown",
        node_name=variables.get(NODE_NAME_VARIABLE) or "unknown",
        address=address,
        token=token,
    )


def run_parser(program: str) -> argparse.ArgumentParser:
    """Options of both programs of a pod of a run."""
    found = argparse.ArgumentParser(prog=f"broadgauge.zip {program}", allow_abbrev=False)
    found.add_argument("--nodes", type=int, required=True, help="pods of the job")
    found.add_argument("--leader", required=True, help="name or address of the first pod")
    found.add_argument("--port", type=int, required=True, help="where agents find the leader")
    found.add_argument("--scratch", type=Path, required=True, help="a folder of its own")
    found.add_argument(
        "--meet-s", type=float, required=True, help="for all pods to come, one after another"
    )
    return found


def end_at_sigterm() -> None:
    """The first process of a container is not ended by a signal that it does not take."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: object) -> None:
    del frame
    signal.signal(number, signal.SIG_IGN)  # what ends already is not ended again
    sys.exit(128 + number)
