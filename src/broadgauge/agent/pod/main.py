"""What is the first process of a pod? It starts torchrun, as often as the experiment has launches.

`python broadgauge.zip pod --nodes 2 --ranks-per-node 8 … -- train.py --epochs 1`: the words behind
`--` are torchrun's. Every pod of a job runs the same; which node it is its job says in a variable.
What it decides is printed with the reason. Its exit code is that of the first launch that failed.
"""

import argparse
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from broadgauge.agent.hardware.tree import Tree
from broadgauge.agent.pod.facts import PodFacts, read_pod_facts
from broadgauge.agent.pod.first_process import (
    allow_locked_memory,
    leave_reason,
    prepare_folder,
    say_topology,
    without_launchers,
)
from broadgauge.agent.pod.network_start import NoNetworkError, network_variables
from broadgauge.agent.pod.networks import add_tree_options
from broadgauge.messages.asked_network import read_network_word
from broadgauge.messages.pod_log import say
from broadgauge.messages.pod_start import WRONG_START, NoPlaceError, node_of

LAUNCH_VARIABLE = "BROADGAUGE_LAUNCH"
"""Of the ranks: which launch it is, from 0."""
NOT_FOUND = 127
"""As a shell says of a program that is not there."""
MEET_LIMIT_S = 1800.0
"""For the first pod to have a name, and for all of them to come: others may wait for a node, or for
their image, long after it."""
LOOK_EVERY_S = 1.0
TELL_EVERY_S = 30.0


def parser() -> argparse.ArgumentParser:
    """Of what the manifest says."""
    found = argparse.ArgumentParser(prog="broadgauge.zip pod", allow_abbrev=False)
    found.add_argument("--nodes", type=int, required=True)
    found.add_argument("--ranks-per-node", type=int, required=True)
    found.add_argument("--leader", required=True, help="name or address of the first pod")
    found.add_argument(
        "--port",
        type=int,
        required=True,
        help="of the first launch; each has the next",
    )
    found.add_argument("--launches", type=int, default=1)
    found.add_argument("--folder", type=Path, required=True, help="where the command runs")
    found.add_argument("--files", type=Path, help="copied to that folder before")
    found.add_argument("--subfolder", default="", help="of the folder: the command runs there")
    found.add_argument(
        "--network",
        metavar="JSON",
        help="by which ranks send; where it isn't here as it was asked for: no start",
    )
    add_tree_options(found)
    return found


def main() -> int:
    """All launches, or those until one fails."""
    running = _Running()
    signal.signal(signal.SIGTERM, running.end)  # before anything that waits
    before, words = _split(sys.argv[1:])
    options = parser().parse_args(before)
    try:
        node = node_of(os.environ, options.nodes)
        folder = prepare_folder(options.folder, options.files, options.subfolder)
        network = _network(options)
    except (NoPlaceError, NoNetworkError) as error:
        for line in str(error).split("\n"):
            say(line)
        if isinstance(error, NoNetworkError):
            leave_reason(options.root, str(error))
        return WRONG_START
    say(f"node {node} of {options.nodes}, on {socket.gethostname()}")
    say_topology(os.environ.get("NCCL_TOPO_FILE", ""), Tree(Path("/")))
    if not _wait_for(options.leader):
        return 1
    for launch in range(options.launches):
        command = [*torchrun(options, node, launch), *words]
        say(f"launch {launch + 1} of {options.launches}: {shlex.join(command)}")
        status = running.run(command, folder, environment(os.environ, launch) | network)
        if status:
            say(f"launch {launch + 1} ended with exit code {status}")
            return status
    say(f"{options.launches} launches are done")
    return 0


def _network(options: argparse.Namespace) -> "dict[str, str]":
    """Variables of the ranks. Raises NoPlaceError for a word that is none, NoNetworkError where
    what was asked for isn't there."""
    if options.network is None:
        return {}
    try:
        network = read_network_word(options.network)
    except ValueError as error:
        raise NoPlaceError(f"--network: {error}") from error

    def read() -> PodFacts:
        return read_pod_facts(options.root, os.environ, options.annotations)

    found = network_variables(network, read, say)
    allow_locked_memory()
    return found


def _split(arguments: Sequence[str]) -> "tuple[list[str], list[str]]":
    """At the first `--`: argparse would take out others, which are the command's."""
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return list(arguments[:place]), list(arguments[place + 1 :])


def torchrun(options: argparse.Namespace, node: int, launch: int) -> list[str]:
    """A static rendezvous at the first pod: nothing has to be found or voted on. A port for each
    launch: a pod that is ahead of the first must not meet the store of the launch before."""
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        f"--nnodes={options.nodes}",
        f"--nproc-per-node={options.ranks_per_node}",
        f"--node-rank={node}",
        f"--master-addr={options.leader}",
        f"--master-port={options.port + launch}",
        f"--rdzv-conf=timeout={MEET_LIMIT_S:.0f}",
    ]


def environment(variables: Mapping[str, str], launch: int) -> dict[str, str]:
    """Of torchrun and its ranks. What an operator has set for another launcher is not theirs."""
    return without_launchers(variables) | {LAUNCH_VARIABLE: str(launch)}


class _Running:
    """torchrun, which is ended when the pod is."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ended = False

    def run(self, words: Sequence[str], folder: Path, variables: Mapping[str, str]) -> int:
        """Its exit code; 128 and the signal's number where one ended it."""
        try:
            self._process = subprocess.Popen(words, cwd=folder, env=variables)
        except OSError as error:
            say(f"{shlex.join(words[:1])} does not start: {error.strerror}")
            return NOT_FOUND
        status = self._process.wait()
        if self._is_ended:
            sys.exit(128 + signal.SIGTERM)
        return status if status >= 0 else 128 - status

    def end(self, number: int, frame: object) -> None:
        """The first process of a container is not ended by a signal that it does not take; torchrun
        passes it on to its ranks."""
        del frame
        self._is_ended = True
        if self._process is None or self._process.poll() is not None:
            sys.exit(128 + number)
        with suppress(ProcessLookupError):
            self._process.terminate()


def _wait_for(leader: str) -> bool:
    """Until its name is known: a Service's names come some time after its pods. Was it in time?"""
    begun_s = told_s = time.monotonic()
    while True:
        try:
            socket.getaddrinfo(leader, None)
        except OSError as error:
            now_s = time.monotonic()
            if now_s - begun_s > MEET_LIMIT_S:
                say(f"{leader} has had no address for {MEET_LIMIT_S:g} s: {error}")
                return False
            if now_s - told_s >= TELL_EVERY_S:
                told_s = now_s
                say(f"waiting for the first pod, {leader}, to have an address")
            time.sleep(LOOK_EVERY_S)
        else:
            return True


if __name__ == "__main__":
    sys.exit(main())
