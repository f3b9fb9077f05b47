"""From a launch that the engine asks for to the processes that the supervisor starts."""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from broadgauge.agent.cores import cores_by_neighbourhood, share_out
from broadgauge.agent.emulated.addresses import interface_name
from broadgauge.agent.emulated.nodes import plan_nodes
from broadgauge.agent.supervisor.programs import argv_of
from broadgauge.messages.launch_order import (
    LaunchOrder,
    Link,
    Mode,
    NodePlan,
    PhaseLimits,
    Program,
    RankPlan,
    SlowPair,
)
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.rank_environment import (
    LOG_VARIABLES,
    LaunchFacts,
    RankPlace,
    given_variables,
    platform_variables,
    rank_environment,
)
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.secrets.values import Secrets
from broadgauge.specs.secrets.variables import FromEnvironment
from broadgauge.specs.time_limits import TimeLimits

EMULATED_PORT = "29500"
"""In a network namespace of its own every port is free. torchrun's default."""
FREE_PORT = "<a free port>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """What a launch runs; tests put scripted ones in their place."""

    worker: Program = "worker"
    """One process a rank, for our own workloads."""
    command: Program = "command"
    """One process a node, which starts torchrun and the user's script."""
    supervisor: tuple[str, ...] = (sys.executable, "-P", "-m", "broadgauge.agent.supervisor")
    """Given the folders for logs and work, and the descriptor of the tool's socket."""

    def of(self, case: Case) -> Program:
        """What each process of this case runs."""
        return self.command if case.workload.is_under_torchrun else self.worker


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSettings:
    """What a platform decides before it plans a launch."""

    mode: Mode
    programs: Programs
    folders: LaunchFolders
    master_port: str
    gpus: tuple[str, ...] = ()
    topology_files: tuple[str, ...] = ()
    secrets: Secrets = field(default_factory=Secrets)


def plan_launch(
    request: LaunchRequest, settings: LaunchSettings
) -> tuple[LaunchOrder, tuple[str, ...]]:
    """Which processes, where, with what; and what the user should know. Raises LaunchError."""
    case = shared_case(request)
    cores, note = share_out(cores_by_neighbourhood(), case.nodes, request.cores_per_node)
    facts = launch_facts(request, settings)
    stands = places(case, settings, len(cores[0]))
    given = [given_variables(case, place, facts) for place in stands]
    shared = dict(set.intersection(*(set(variables.items()) for variables in given)))
    shared = {name: value for name, value in shared.items() if name not in LOG_VARIABLES}
    ranks = tuple(
        _rank_plan(request, settings, place, dict(variables.items() - shared.items()))
        for place, variables in zip(stands, given, strict=True)
    )
    order = LaunchOrder(
        launch_id=request.launch_id,
        mode=settings.mode,
        num_nodes=case.nodes,
        nodes=tuple(NodePlan(node=node, cores=held) for node, held in enumerate(cores)),
        ranks=ranks,
        environment=shared,
        link=link_of(case),
        limits=phase_limits(request.limits),
        uid=os.getuid(),
        gid=os.getgid(),
    )
    return order, tuple(filter(None, (note, _gloo_note(case))))


def _rank_plan(
    request: LaunchRequest, settings: LaunchSettings, place: RankPlace, variables: Mapping[str, str]
) -> RankPlan:
    """What libraries write beside the logs is named as the order names the logs."""
    folder = f"{settings.folders.logs.absolute()}{os.sep}"
    in_logs = {
        name: value.removeprefix(folder)
        for name, value in variables.items()
        if name in LOG_VARIABLES and value.startswith(folder)
    }
    return RankPlan(
        rank=place.rank,
        node=place.node,
        program=settings.programs.of(request.cases[0]),
        environment={name: value for name, value in variables.items() if name not in in_logs},
        log_paths=in_logs,
        log=f"{request.launch_id}.rank{place.rank}.log",
    )


def first_environment(request: LaunchRequest, settings: LaunchSettings) -> dict[str, str]:
    """All variables of rank 0, on this machine."""
    case = shared_case(request)
    cores, _ = share_out(cores_by_neighbourhood(), case.nodes, request.cores_per_node)
    facts = replace(launch_facts(request, settings), inherited=os.environ)
    return rank_environment(case, places(case, settings, len(cores[0]))[0], facts)


def phase_limits(limits: TimeLimits) -> PhaseLimits:
    """As those who watch over ranks are told them."""
    return PhaseLimits(
        rendezvous_s=limits.rendezvous_s,
        warm_up_s=limits.warm_up_s,
        measure_s=limits.measure_s,
        teardown_s=limits.teardown_s,
        stall_s=limits.stall_s,
    )


def _gloo_note(case: Case) -> str | None:
    """What does Gloo make of several NICs?

    Source: getContext() of torch/csrc/distributed/c10d/ProcessGroupGloo.cpp of torch 2.11: one
    context a device, taken by the number of the operation. Seen here too: with two NICs and a
    barrier before each collective, barriers cross one NIC and all collectives the other.
    """
    link = link_of(case)
    if case.backend != "gloo" or link is None or link.nics_per_node == 1:
        return None
    return (
        f"Gloo sends each operation over one of the {link.nics_per_node} NICs, in turn: one "
        "collective at a time fills one NIC, not all"
    )


def command_lines(request: LaunchRequest, settings: LaunchSettings) -> tuple[str, ...]:
    """Environment and command of each rank as a shell would take them; starts nothing.

    Only what the platform and the case set is shown: the rest is the tool's own environment.
    """
    case = shared_case(request)
    cores, _ = share_out(cores_by_neighbourhood(), case.nodes, request.cores_per_node)
    facts = launch_facts(request, settings)
    argv = argv_of(settings.programs.of(case))
    lines = []
    for place in places(case, settings, len(cores[0])):
        variables = platform_variables(case, place, facts) | case.environment
        words = [_in_shell(name, variable) for name, variable in variables.items()]
        lines.append(" ".join([*words, shlex.join(argv)]))
    return tuple(lines)


def _in_shell(name: str, variable: str | FromEnvironment) -> str:
    """A secret comes from the environment of whoever types it."""
    value = shlex.quote(variable) if isinstance(variable, str) else f'"${name}"'
    return f"{name}={value}"


def shared_case(request: LaunchRequest) -> Case:
    """The case that stands for all of the launch: they share what starts the ranks."""
    case = request.cases[0]
    if len({other.workload.is_under_torchrun for other in request.cases}) > 1:
        raise LaunchError(
            f"{request.launch_id}: a `command` and another workload can't share a launch",
            hint="this is a mistake of the plan, not of the experiment",
        )
    return case


def places(case: Case, settings: LaunchSettings, num_cores: int) -> tuple[RankPlace, ...]:
    """Where does each process stand? A `command` has one a node, with the node as its rank."""
    each = 1 if case.workload.is_under_torchrun else case.ranks_per_node
    has_overlay = _is_tunnel(link_of(case))
    first_node = plan_nodes(case.nodes, has_overlay=has_overlay)[0]
    master = "127.0.0.1" if settings.mode is Mode.PLAIN else first_node.address
    return tuple(
        RankPlace(
            rank=node * each + local_rank,
            world_size=case.nodes * each,
            local_rank=local_rank,
            local_world_size=case.ranks_per_node,
            node=node,
            num_nodes=case.nodes,
            num_cores=num_cores,
            master_address=master,
            master_port=settings.master_port,
        )
        for node in range(case.nodes)
        for local_rank in range(each)
    )


def launch_facts(request: LaunchRequest, settings: LaunchSettings) -> LaunchFacts:
    """What do all ranks have in common?"""
    return LaunchFacts(
        launch_id=request.launch_id,
        log_stem=settings.folders.log_stem(request.launch_id),
        interface=",".join(interfaces_of(request.cases[0], settings.mode)),
        is_emulated=settings.mode is Mode.NAMESPACES,
        gpus=settings.gpus,
        topology_files=settings.topology_files,
        secrets=settings.secrets,
    )


def link_of(case: Case) -> Link | None:
    """What must the links carry in this case? None: one node, or links that are not ours."""
    network = case.link
    if network is None or case.nodes < 2 or network.face is not None:
        return None
    return Link(
        rate_gbps=network.rate_gbps,
        mtu_bytes=network.mtu_bytes,
        receive_rate_gbps=network.receive_rate_gbps,
        delay_s=network.delay_s,
        jitter_s=network.jitter_s,
        loss_ratio=network.loss_ratio,
        slow_pairs=tuple(
            SlowPair(nodes=pair.nodes, rate_ratio=pair.rate_ratio) for pair in network.slow_pairs
        ),
        overlay=network.overlay,
        nics_per_node=network.num_nics,
    )


def interfaces_of(case: Case, mode: Mode) -> tuple[str, ...]:
    """Which interfaces do the ranks of this case use?"""
    if mode is Mode.PLAIN:
        return ("lo",)
    link = link_of(case)
    num_nics, has_overlay = (1, False) if link is None else (link.nics_per_node, _is_tunnel(link))
    return tuple(interface_name(nic, has_overlay=has_overlay) for nic in range(num_nics))


def _is_tunnel(link: Link | None) -> bool:
    return link is not None and link.overlay is not None
