"""What do the figures of a launch on several machines depend on besides the experiment?"""

from collections.abc import Mapping, Sequence
from typing import Any

from broadgauge.agent.facts import HostFacts, InterfaceFacts
from broadgauge.messages.leader import INTERFACES_WORD
from broadgauge.platforms.host_facts import git_commit
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.led.orders import Seats, facts_for, places_on, rank_variables
from broadgauge.platforms.machine import installed_version
from broadgauge.platforms.rank_environment import recorded_variables
from broadgauge.specs.case import Case
from broadgauge.specs.machines.alike_nodes import alike_nodes
from broadgauge.specs.platforms import PlatformKind
from broadgauge.specs.records.record import Environment, GpuFacts, NodeFacts


def machines_environment(
    platform: PlatformKind,
    case: Case,
    hosts: Sequence[HostFacts],
    seats: Seats,
    hello: Mapping[str, Any],
    *,
    folders: LaunchFolders,
    found: Mapping[str, str] | None = None,
    cluster: Mapping[str, str | None] | None = None,
) -> Environment:
    """The first machine's, and what rank 0 said of its libraries.

    `found`: variables that the first agent gave its ranks. `cluster`: facts of all of it.
    """
    first = hosts[0]
    place = places_on(case, 0, seats)[0]
    asked = rank_variables(case, place, facts_for(case, seats.seats[0]))
    told = {name: value for name, value in asked.items() if INTERFACES_WORD not in value}
    return Environment(
        broadgauge=installed_version("broadgauge") or "unknown",
        platform=platform,
        python=first.python,
        torch=_text_or_none(hello.get("torch")),
        nccl=_text_or_none(hello.get("nccl")),
        cuda=_text_or_none(hello.get("cuda")),
        driver=first.driver,
        kernel=first.kernel,
        distribution=first.distribution,
        cpu=first.cpu,
        cores=first.cores,
        memory_bytes=first.memory_bytes,
        gpus=_gpus(case, hosts),
        nics=tuple(_in_words(each) for each in first.interfaces),
        git_commit=git_commit(folders.working_of(case.arm)),
        variables=recorded_variables({**(found or {}), **told}, case, "{life}", "{logs}"),
        nodes=nodes_of(case, hosts),
        cluster=dict(cluster or {}),
    )


def nodes_of(case: Case, facts: Sequence[HostFacts]) -> tuple[NodeFacts, ...]:
    """Every machine of the case by itself, equal ones together."""
    return alike_nodes(
        NodeFacts(
            nodes=(number,),
            hostnames=(host.hostname,),
            python=host.python,
            torch=host.torch,
            nccl=host.nccl,
            driver=host.driver,
            kernel=host.kernel,
            distribution=host.distribution,
            cpu=host.cpu,
            cores=host.cores,
            memory_bytes=host.memory_bytes,
            gpus=tuple(GpuFacts(name=gpu.name, memory_bytes=gpu.memory_bytes) for gpu in host.gpus),
            nics=tuple(_in_words(each) for each in host.interfaces),
        )
        for number, host in enumerate(facts[: case.nodes])
    )


def _gpus(case: Case, facts: Sequence[HostFacts]) -> tuple[GpuFacts, ...]:
    if case.device != "cuda":
        return ()
    used = [gpu for host in facts[: case.nodes] for gpu in host.gpus[: case.ranks_per_node]]
    return tuple(GpuFacts(name=gpu.name, memory_bytes=gpu.memory_bytes) for gpu in used)


def _in_words(interface: InterfaceFacts) -> str:
    speed = interface.speed_gbps
    words = f"{interface.name} " + ("speed unknown" if speed is None else f"{speed:g} Gbit/s")
    return words if interface.driver is None else f"{words} {interface.driver}"


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)
